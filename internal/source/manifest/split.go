package manifest

import (
	"bytes"
	"encoding/json"
)

// chunk is the text of one document, and the line of the file that it begins on.
type chunk struct {
	text []byte
	line int
}

// split cuts a file into documents, leaving out those without content. YAML documents are parted by a line of "---"
// (which no YAML text can hold inside a document, not even in a block of text); JSON documents may just follow one
// another.
func split(text []byte) []chunk {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	var out []chunk
	current := chunk{line: 1}
	start := 0
	for line, pos := 1, 0; pos < len(text); line++ {
		end := pos + lineLen(text[pos:])
		if n := marker(text[pos:end]); n > 0 {
			current.text = text[start:pos]
			out = appendChunk(out, current)
			start, current.line = pos+n, line
		}
		pos = end
	}
	current.text = text[start:]
	return appendChunk(out, current)
}

// lineLen is the length of the first line with its end.
func lineLen(text []byte) int {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return i + 1
	}
	return len(text)
}

// marker is the length of the mark at the start of a line that ends a document, or 0.
func marker(line []byte) int {
	if !bytes.HasPrefix(line, []byte("---")) && !bytes.HasPrefix(line, []byte("...")) {
		return 0
	}
	if len(line) > 3 && !bytes.ContainsRune([]byte(" \t\r\n"), rune(line[3])) {
		return 0
	}
	return 3
}

func appendChunk(out []chunk, c chunk) []chunk {
	if bytes.HasPrefix(bytes.TrimLeft(c.text, " \t\r\n"), []byte("{")) {
		return appendJSON(out, c)
	}
	if blank(c.text) {
		return out
	}
	return append(out, c)
}

// appendJSON cuts JSON values that follow one another. Text that is not JSON is YAML in flow style, or wrong: the
// YAML parser tells.
func appendJSON(out []chunk, c chunk) []chunk {
	decoder := json.NewDecoder(bytes.NewReader(c.text))
	done := int64(0)
	for {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			break
		}
		end := decoder.InputOffset()
		start := end - int64(len(raw))
		out = append(out, chunk{text: raw, line: c.line + bytes.Count(c.text[:start], []byte("\n"))})
		done = end
	}
	rest := chunk{text: c.text[done:], line: c.line + bytes.Count(c.text[:done], []byte("\n"))}
	if blank(rest.text) {
		return out
	}
	return append(out, rest)
}

// blank reports whether text has nothing but comments and YAML directives.
func blank(text []byte) bool {
	for len(text) > 0 {
		n := lineLen(text)
		if line := bytes.TrimSpace(text[:n]); len(line) > 0 && line[0] != '#' && text[0] != '%' {
			return false
		}
		text = text[n:]
	}
	return true
}
