package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Print writes the effective configuration as YAML in the file's own keys, with secrets hidden.
func (c *Config) Print(w io.Writer) error {
	var out bytes.Buffer
	writeBlock(&out, c.tree(), "")
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("print configuration: %w", err)
	}
	return nil
}

// MarshalJSON encodes what Print shows.
func (c *Config) MarshalJSON() ([]byte, error) { return json.Marshal(c.tree()) }

func (c *Config) tree() object { return structTree(reflect.ValueOf(c).Elem()) }

// object is a mapping that keeps the order of its keys.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON keeps the order.
func (o object) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	for i, m := range o {
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, "%s:%s", quote(m.name), value)
	}
	return slices.Concat([]byte("{"), out.Bytes(), []byte("}")), nil
}

// tree turns a value of the schema into what the file would say.
func tree(value reflect.Value, key string) any {
	switch v := value.Interface().(type) {
	case *Project:
		return tree(value.Elem(), key)
	case time.Duration:
		return inUnit(v, key)
	case Account:
		return accountTree(v)
	case fmt.Stringer:
		return v.String()
	case string:
		return hideUserinfo(v)
	}
	switch value.Kind() {
	case reflect.Struct:
		return structTree(value)
	case reflect.Map:
		return mapTree(value)
	default:
		return value.Interface()
	}
}

func structTree(value reflect.Value) object {
	o := object{}
	for _, field := range reflect.VisibleFields(value.Type()) {
		if name := field.Tag.Get("key"); name != "" {
			o = append(o, member{name, tree(value.FieldByIndex(field.Index), name)})
		}
	}
	return o
}

func mapTree(value reflect.Value) object {
	o := object{}
	for _, name := range value.MapKeys() {
		o = append(o, member{name.String(), tree(value.MapIndex(name), name.String())})
	}
	slices.SortFunc(o, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return o
}

func accountTree(account Account) object {
	o := object{}
	for _, name := range sortedNames(account) {
		shown := account[name].String()
		if slices.Contains(openAccountKeys, name) {
			shown = account[name].Reveal()
		}
		o = append(o, member{name, shown})
	}
	return o
}

// inUnit gives a whole number where it is one: 10, not 10.0.
func inUnit(d time.Duration, key string) any {
	_, one := unit(key)
	if d%one == 0 {
		return int64(d / one)
	}
	return float64(d) / float64(one)
}
