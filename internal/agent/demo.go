package agent

import (
	"encoding/json"
	"net/http"
)

// Demo answers like an agent that repeats what it understood. It speaks the same HTTP as a real one, so that a new
// installation shows the whole way of a message before any agent exists.
func Demo() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var turn struct {
			Text     string            `json:"text"`
			Messages []json.RawMessage `json:"messages"`
		}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<20)).Decode(&turn); err != nil {
			http.Error(w, "the body is not a turn", http.StatusBadRequest)
			return
		}
		reply := "Entendi: " + turn.Text
		if len(turn.Messages) > 1 {
			reply = "Entendi tudo junto: " + turn.Text
		}
		w.Header().Set("Content-Type", "application/json")
		// A caller that is gone needs no answer.
		_ = json.NewEncoder(w).Encode(map[string]string{"reply": reply})
	})
}
