package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"fila/internal/api/entry"
)

// maxPhone is how long an identifier may be, in bytes: it is a key of indexes.
const maxPhone = 256

// instruction is the body of every action; each looks at what it needs.
type instruction struct {
	By      string   `json:"by"`
	Reason  string   `json:"reason"`
	Minutes *float64 `json:"minutes"`
	Waiting string   `json:"waiting"`
	Outcome string   `json:"outcome"`
	Force   bool     `json:"force"`
}

// instructed reads the body of an action; none is the same as an empty object. What is missing in it the database refuses.
func instructed(c echo.Context) (instruction, error) {
	var in instruction
	body, err := entry.Body(c, entry.MaxBody)
	if err != nil || len(strings.TrimSpace(string(body))) == 0 {
		return in, err
	}
	err = json.Unmarshal(body, &in)
	var mistyped *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mistyped) && mistyped.Field == "":
		return in, entry.Refuse(http.StatusUnprocessableEntity, "the body must be an object")
	case errors.As(err, &mistyped):
		p := entry.Refuse(http.StatusUnprocessableEntity, "%s must be %s", mistyped.Field, kindOf(mistyped.Field))
		p.Members = map[string]any{"field": mistyped.Field}
		return in, p
	case err != nil:
		return in, entry.Refuse(http.StatusBadRequest, "the body is not JSON")
	}
	return in, onlyKnown(body)
}

// onlyKnown refuses a field that no action has: a misspelt one would be passed over, and something else be done than was meant.
func onlyKnown(body []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&instruction{})
	if err == nil {
		return nil
	}
	field, ok := strings.CutPrefix(err.Error(), "json: unknown field ")
	if !ok {
		return err
	}
	field = strings.Trim(field, `"`)
	p := entry.Refuse(http.StatusUnprocessableEntity, "%s is no field of an action; by, reason, minutes, waiting, outcome and force are", field)
	p.Members = map[string]any{"field": field}
	return p
}

func kindOf(field string) string {
	switch field {
	case "minutes":
		return "a number"
	case "force":
		return "true or false"
	}
	return "a string"
}

// place is the conversation that a path names.
func place(c echo.Context) (project, phone string, err error) {
	project, phone = entry.Param(c, "project"), entry.Param(c, "phone")
	if strings.TrimSpace(phone) == "" {
		return "", "", entry.Refuse(http.StatusUnprocessableEntity, "phone is empty")
	}
	return project, phone, checkPhone(phone)
}

func checkPhone(phone string) error {
	if len(phone) > maxPhone {
		return entry.Refuse(http.StatusUnprocessableEntity, "phone is over %d bytes", maxPhone)
	}
	return nil
}

// turnID is the turn that a path names.
func turnID(c echo.Context) (int64, error) {
	id, ok := parseID(entry.Param(c, "id"))
	if !ok {
		return 0, entry.Refuse(http.StatusNotFound, "no such turn; ids are decimal numbers")
	}
	return id, nil
}

func parseID(text string) (int64, bool) {
	id, err := strconv.ParseInt(text, 10, 64)
	return id, err == nil && id > 0 && text[0] != '+'
}

// attempt is the fence that an agent shows; nil for one that shows none.
func attempt(c echo.Context) (*int, error) {
	shown := c.Request().Header.Get("X-Fila-Attempt")
	if shown == "" {
		return nil, nil
	}
	number, err := strconv.ParseInt(shown, 10, 32)
	if err != nil || number < 1 {
		return nil, entry.Refuse(http.StatusUnprocessableEntity, "X-Fila-Attempt must be the number that came with the call")
	}
	n := int(number)
	return &n, nil
}
