package backend

import (
	"errors"

	"sluice/internal/model"
)

// FamilyError is the failure of an Apply for one family. What it was to write of the other is written, unless the error
// is joined with that one's.
type FamilyError struct {
	Family model.Family
	Err    error
}

// Error names the family.
func (e *FamilyError) Error() string { return e.Family.String() + ": " + e.Err.Error() }

// Unwrap is the failure itself.
func (e *FamilyError) Unwrap() error { return e.Err }

// FailedFamilies tells which families an error of Apply concerns: those of the FamilyErrors that it is or joins, and
// both if there is anything else in it.
func FailedFamilies(err error) (failed [2]bool) {
	var one *FamilyError
	joined, many := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
	case many:
		for _, e := range joined.Unwrap() {
			of := FailedFamilies(e)
			failed[0], failed[1] = failed[0] || of[0], failed[1] || of[1]
		}
	case errors.As(err, &one):
		failed[one.Family] = true
	default:
		failed = [2]bool{true, true}
	}
	return failed
}
