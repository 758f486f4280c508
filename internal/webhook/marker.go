package webhook

import "strings"

// markers stand for a message that has no words of its own, in the language of those who read it.
var markers = map[string]string{
	"image": "imagem", "audio": "áudio", "video": "vídeo", "document": "documento", "sticker": "figurinha",
	"location": "localização", "contact": "contato",
}

// marker is the text of a message of this kind that has media and no text.
func (in *incoming) marker(kind string) string {
	word, ok := markers[kind]
	if !ok {
		// A file that came as another kind of message is still seen for what it is.
		family, _, _ := strings.Cut(filled(in.Media.MimeType), "/")
		if word, ok = markers[family]; !ok {
			word = markers["document"]
		}
	}
	// One line, whatever the file is called.
	if name := strings.Join(strings.Fields(filled(in.Media.FileName)), " "); name != "" && word == markers["document"] {
		word += ": " + name
	}
	return "[" + word + "]"
}
