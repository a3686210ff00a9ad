package manifest

import (
	"io/fs"
	"os"
)

// root is what one of the paths that were given last led to.
type root struct {
	info  fs.FileInfo // of the path itself
	files []string
	lost  bool // since then it was gone, or could not be read, or was an empty folder
}

// keeps reports whether the files that the path led to stay in force, whatever it leads to now. A file that goes from a
// folder is deleted. But a path that is gone altogether is one that somebody moves, or a file system that is away; and
// a folder without manifests in its place is the one that a file system was mounted on, or one that is filled next.
func (r *root) keeps(at listing) bool {
	return at.err != nil ||
		at.none && len(r.files) > 0 && (r.lost || !os.SameFile(r.info, at.info))
}

// lost says why the files of a path are kept.
func (l *look) lost(r root, at listing) Problem {
	message := "no manifests are in this folder, which is not the one that was read"
	if at.err != nil {
		message = at.err.Error()
	}
	for _, path := range r.files {
		if l.files[path].says() {
			return Problem{File: at.path, Message: message + keptText}
		}
	}
	return Problem{File: at.path, Message: message}
}
