package nft

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// maxComment is the longest comment that nft accepts, in bytes.
const maxComment = 127

// CleanComment is a comment as it is written: cut to what nft accepts, and without what would end it, since nft knows no
// escapes within quotes.
func CleanComment(s string) string {
	if isClean(s) {
		return s
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '"':
			return '\''
		case r < ' ' || r == 0x7f:
			return ' '
		}
		return r
	}, s)
	if len(s) <= maxComment {
		return s
	}
	end := maxComment
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// isClean finds fast that a comment may stay as it is, as nearly all may.
func isClean(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c >= 0x7f {
			return false
		}
	}
	return len(s) <= maxComment
}

func quote(s string) string { return `"` + CleanComment(s) + `"` }

func appendComment(b []byte, comment string) []byte {
	if comment == "" {
		return b
	}
	return append(append(append(b, ` comment "`...), CleanComment(comment)...), '"')
}

// appendDuration prints a time as nft does: 1d2h3m4s5ms, without what is none.
func appendDuration(b []byte, d time.Duration) []byte {
	units := [...]struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}, {time.Millisecond, "ms"}}
	if d < time.Millisecond {
		return append(b, "0s"...)
	}
	for _, u := range units {
		if n := d / u.of; n > 0 {
			b = append(strconv.AppendInt(b, int64(n), 10), u.name...)
			d -= n * u.of
		}
	}
	return b
}
