package filewatch

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks is how many symbolic links the kernel follows on one way.
const maxLinks = 40

// ways are the paths whose change can lead to another file: the path itself, each folder above it, and all that
// symbolic links on the way lead over. It ends at what is not there.
func ways(path string) map[string]bool {
	out := map[string]bool{}
	at, links := string(filepath.Separator), 0
	rest := split(path)
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		out[next] = true
		info, err := os.Lstat(next)
		if err != nil {
			return out
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return out
		}
		if filepath.IsAbs(target) {
			at = string(filepath.Separator)
		}
		rest = append(split(target), rest...)
	}
	return out
}

// split is the names in a path.
func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == filepath.Separator })
}
