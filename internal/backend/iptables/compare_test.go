package iptables

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"sluice/internal/model"
)

func rendered(t *testing.T, r *Ruleset, f model.Family) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.RenderFamily(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCompareNothing(t *testing.T) {
	r := webRules()
	changes, err := r.Compare(model.IPv4, []byte(rendered(t, r, model.IPv4)))
	if err != nil || len(changes) > 0 {
		t.Errorf("changes %+v, error %v; want none", changes, err)
	}
}

func TestCompare(t *testing.T) {
	r := webRules()
	var saved []string
	for l := range strings.SplitSeq(rendered(t, r, model.IPv4), "\n") {
		switch {
		case strings.HasPrefix(l, "-A KUBE-MARK-MASQ"):
			continue // somebody removed it
		case l == "*nat":
			l += "\n:KUBE-SVC-OLDOLDOLDOLDOLD1 - [0:0]\n:DOCKER - [0:0]"
		}
		saved = append(saved, l)
	}
	changes, err := r.Compare(model.IPv4, []byte(strings.Join(saved, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range changes {
		got = append(got, c.Table+" "+c.Chain)
		switch c.Chain {
		case "KUBE-MARK-MASQ":
			if len(c.Old) != 0 || len(c.New) != 1 || c.Made || c.Removed {
				t.Errorf("%+v, want one rule to come back", c)
			}
		case "KUBE-SVC-OLDOLDOLDOLDOLD1":
			if !c.Removed {
				t.Errorf("%+v, want it removed", c)
			}
		}
	}
	if want := []string{"nat KUBE-MARK-MASQ", "nat KUBE-SVC-OLDOLDOLDOLDOLD1"}; !slices.Equal(got, want) {
		t.Errorf("changed %q, want %q", got, want)
	}
}
