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

// Declined is an error of Result.Refused that is not the kernel's: it was not asked for this Service port.
type Declined struct {
	By  string // who does not take the Service port, such as "the proxy"
	Err error
}

// Error is the reason alone; it says who if that matters.
func (e *Declined) Error() string { return e.Err.Error() }

// Unwrap is the reason.
func (e *Declined) Unwrap() error { return e.Err }

// RefusedBy names who refuses a Service port, for an error of Result.Refused.
func RefusedBy(err error) string {
	if d, ok := errors.AsType[*Declined](err); ok {
		return d.By
	}
	return "the kernel"
}

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
