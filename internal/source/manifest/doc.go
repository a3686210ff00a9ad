// Package manifest is the source that reads Kubernetes objects from YAML and JSON: from files, folders and standard
// input, once or for as long as they change.
//
// Text is split into documents, each document is decoded into the objects that package convert understands, and the
// objects in force are put together into a model.Snapshot:
//
//	paths ─▶ files ─▶ documents ─▶ objects ─▶ Snapshot + Problems
//
// Every step keeps what it made until its input changes, so a changed document costs the work for that document, and
// objects that did not change keep their pointers from one Snapshot to the next.
//
// Invariant: while files are watched, an object goes away only because its name went from its file, or its file from a
// folder that is there; never because a text is wrong, or because a path that was given went away or cannot be read.
// What was last right stays in force, and a Problem says so.
package manifest
