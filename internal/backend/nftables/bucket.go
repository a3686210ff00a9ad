package nftables

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/internal/model"
	"sluice/internal/nft"
)

// bucket is a way to pick one of a list's slots. Its chain is shared by all lists that pick alike, since the number of
// slots and the timeout are constants in the chain's rules.
type bucket struct {
	slots uint32
	// timeout is that of session affinity in seconds; 0: none.
	timeout uint32
	// family counts only with a timeout: the maps of affinity are apart.
	family model.Family
}

// Buckets with a fixed number. Only the last one has a chain.
const (
	bucketReject bucketNumber = iota
	bucketDrop
	bucketRoundRobin // each list has a chain of its own, because the kernel counts per rule
	firstBucket
)

// newBucket is how a list of n slots is picked from.
func newBucket(f model.Family, n int, affinity time.Duration) bucket {
	b := bucket{slots: uint32(n), timeout: uint32(affinity / time.Second)}
	if b.timeout != 0 {
		b.family = f
	}
	return b
}

// chain is the bucket's chain.
func (b bucket) chain() nft.Chain {
	comment := "a slot at random"
	if b.timeout != 0 {
		comment = "the endpoint that the client had, or else a slot at random"
	}
	return nft.Chain{Name: b.name(), Comment: comment, Rules: b.rules()}
}

// name is that of the bucket's chain, such as "random-3" or "affinity4-3-10800s".
func (b bucket) name() string {
	if b.timeout == 0 {
		return "random-" + strconv.Itoa(int(b.slots))
	}
	return fmt.Sprintf("affinity%d-%d-%ds", digit(b.family), b.slots, b.timeout)
}

// bucketOf reads the name of a chain.
func bucketOf(chain string) (b bucket, ok bool) {
	kind, rest, _ := strings.Cut(chain, "-")
	slots, timeout, _ := strings.Cut(rest, "-")
	n, err := strconv.ParseUint(slots, 10, 32)
	if err != nil {
		return bucket{}, false
	}
	b.slots = uint32(n)
	if kind != "random" {
		n, err = strconv.ParseUint(strings.TrimSuffix(timeout, "s"), 10, 32)
		b.timeout = uint32(n)
		if kind == "affinity6" {
			b.family = model.IPv6
		}
	}
	return b, err == nil && b.slots > 0 && b.name() == chain
}

// digit is what names of sets and chains call a family.
func digit(f model.Family) int { return [...]int{model.IPv4: 4, model.IPv6: 6}[f] }

// bucketTable is the bucket of each number; the zero bucket is none. Compare what was written with what is wanted.
type bucketTable [maxBucket + 1]bucket

// chains are those of all buckets, sorted, and the one that leads to those of lists whose endpoints take turns.
func (t *bucketTable) chains() []nft.Chain {
	all := []nft.Chain{turns()}
	for _, b := range slices.SortedFunc(slices.Values(t[:]), bucket.compare) {
		if b != (bucket{}) {
			all = append(all, b.chain())
		}
	}
	return all
}

// compare sorts those without affinity first.
func (b bucket) compare(o bucket) int {
	return cmp.Or(cmp.Compare(b.timeout, o.timeout), cmp.Compare(b.family, o.family), cmp.Compare(b.slots, o.slots))
}

// elements yields the elements that lead to the chains.
func (t *bucketTable) elements(yield func(setID, *nft.Element) bool) {
	if e := leadTo(bucketRoundRobin, chainTurns); !yield(setBuckets, &e) {
		return
	}
	for n, b := range t {
		if b == (bucket{}) {
			continue
		}
		if e := leadTo(bucketNumber(n), b.name()); !yield(setBuckets, &e) {
			return
		}
	}
}

// leadTo is the element that leads from a number to a chain.
func leadTo(n bucketNumber, chain string) nft.Element {
	return nft.Element{Key: nft.Value{}.Uint32(n.key()), Verdict: nft.Verdict{Kind: nft.Goto, Chain: chain}}
}
