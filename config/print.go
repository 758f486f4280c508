package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"time"

	"github.com/goccy/go-yaml"
)

// Print writes the effective configuration as YAML in the file's own keys, with secrets hidden.
func (c *Config) Print(w io.Writer) error {
	text, err := yaml.MarshalWithOptions(c.tree(), yaml.Indent(2), yaml.IndentSequence(true))
	if err != nil {
		return fmt.Errorf("encode configuration: %w", err)
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("print configuration: %w", err)
	}
	return nil
}

// MarshalJSON encodes what Print shows.
func (c *Config) MarshalJSON() ([]byte, error) { return json.Marshal(c.tree()) }

func (c *Config) tree() any { return tree(reflect.ValueOf(c).Elem(), "") }

// object is a mapping that keeps the order of its keys.
type object []yaml.MapItem

// MarshalYAML keeps the order.
func (o object) MarshalYAML() (any, error) { return yaml.MapSlice(o), nil }

// MarshalJSON keeps the order.
func (o object) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	separator := "{"
	for _, item := range o {
		name, err := json.Marshal(item.Key)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(item.Value)
		if err != nil {
			return nil, err
		}
		out.WriteString(separator)
		out.Write(name)
		out.WriteByte(':')
		out.Write(value)
		separator = ","
	}
	if len(o) == 0 {
		out.WriteByte('{')
	}
	out.WriteByte('}')
	return out.Bytes(), nil
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
			o = append(o, yaml.MapItem{Key: name, Value: tree(value.FieldByIndex(field.Index), name)})
		}
	}
	return o
}

func mapTree(value reflect.Value) object {
	o := object{}
	for _, name := range value.MapKeys() {
		o = append(o, yaml.MapItem{Key: name.String(), Value: tree(value.MapIndex(name), name.String())})
	}
	slices.SortFunc(o, func(a, b yaml.MapItem) int { return bytes.Compare([]byte(a.Key.(string)), []byte(b.Key.(string))) })
	return o
}

func accountTree(account Account) object {
	o := object{}
	for _, name := range sortedNames(account) {
		shown := account[name].String()
		if slices.Contains(openAccountKeys, name) {
			shown = account[name].Reveal()
		}
		o = append(o, yaml.MapItem{Key: name, Value: shown})
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
