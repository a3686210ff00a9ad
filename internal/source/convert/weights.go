package convert

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"sluice/internal/model"
)

// weights reads a list such as "web-v1-*=9, 10.244.2.9=3, node/node-b=2". A wrong entry is left out: its endpoints
// then have the weight that the others leave them.
func weights(n *notes, annotations map[string]string) (out []model.Weight) {
	for entry := range strings.SplitSeq(annotations[WeightsAnnotation], ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		w, err := weight(entry)
		if err != nil {
			n.warn("metadata.annotations["+WeightsAnnotation+"]", "%q: %v (left out)", entry, err)
			continue
		}
		out = append(out, w)
	}
	return out
}

func weight(entry string) (w model.Weight, err error) {
	name, text, ok := strings.Cut(entry, "=")
	if !ok {
		return w, fmt.Errorf("must be NAME=WEIGHT")
	}
	value, err := strconv.ParseUint(strings.TrimSpace(text), 10, 16)
	if err != nil || value < 1 || value > model.MaxWeight {
		return w, fmt.Errorf("the weight must be 1-%d", model.MaxWeight)
	}
	w.Value = uint16(value)
	name = strings.TrimSpace(name)
	if w.Address, err = parseAddr(name); err == nil {
		return w, nil
	}
	node, isNode := strings.CutPrefix(name, "node/")
	switch {
	case isNode && len(validation.IsDNS1123Subdomain(node)) == 0:
		w.Node = node
	case isPodPattern(name):
		w.Pod = name
	default:
		return w, fmt.Errorf("%q is no address, no name of a Pod (a * may end it) and no node/NAME", name)
	}
	return w, nil
}

// isPodPattern reports whether a Pod can have this name, or one that begins so if a * is at the end.
func isPodPattern(s string) bool {
	beginning, open := strings.CutSuffix(s, "*")
	if open {
		beginning += "x" // what ends in a dash or dot may go on
	}
	return len(validation.IsDNS1123Subdomain(beginning)) == 0
}
