package backend

import (
	"errors"
	"testing"

	"sluice/internal/model"
)

func TestFailedFamilies(t *testing.T) {
	four := &FamilyError{Family: model.IPv4, Err: errors.New("refused")}
	six := &FamilyError{Family: model.IPv6, Err: errors.New("refused")}
	for _, tt := range []struct {
		err  error
		want [2]bool
	}{
		{nil, [2]bool{}},
		{four, [2]bool{true, false}},
		{errors.Join(six), [2]bool{false, true}},
		{errors.Join(four, six), [2]bool{true, true}},
		{errors.Join(six, errors.New("no memory")), [2]bool{true, true}},
		{errors.New("no memory"), [2]bool{true, true}},
	} {
		if got := FailedFamilies(tt.err); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.err, got, tt.want)
		}
	}
}
