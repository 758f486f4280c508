package call

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// signingKey returns nil for no secret. Its errors never show the secret.
func signingKey(secret string) ([]byte, error) {
	encoded, standard := strings.CutPrefix(secret, "whsec_")
	switch {
	case secret == "":
		return nil, nil
	case !standard:
		return []byte(secret), nil
	}
	key, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(encoded, "="))
	if err != nil || len(key) == 0 {
		return nil, errors.New("signing secret: what follows whsec_ is not base64; give whsec_ and base64, or a secret without whsec_")
	}
	return key, nil
}

// sign sets the three headers of Standard Webhooks. The id is the same on every repetition, the time is that of this one.
func sign(header http.Header, key []byte, id string, at time.Time, body []byte) {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	header.Set("Webhook-Id", id)
	header.Set("Webhook-Timestamp", timestamp)
	header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}
