package nftables

import (
	"errors"
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

const (
	// standingBuckets is up to how many slots a chain is always there. To make one later costs the kernel a walk
	// through all endpoints.
	standingBuckets = 16
	// spareBuckets is how many others are kept though no list needs them: a Deployment that scales up and down comes
	// back to the same few numbers.
	spareBuckets = 16
)

var errNoBucket = errors.New("more than 1021 combinations of a number of endpoints and a timeout of session affinity")

// newBucket is how a list of n slots is picked from.
func newBucket(f model.Family, n int, affinity time.Duration) bucket {
	b := bucket{slots: uint32(n), timeout: uint32(affinity / time.Second)}
	if b.timeout != 0 {
		b.family = f
	}
	return b
}

// chain is the bucket's chain.
func (b bucket) chain() nft.Chain { return nft.Chain{Name: b.name(), Rules: b.rules()} }

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
	return b, err == nil && b.name() == chain
}

// digit is what names of sets and chains call a family.
func digit(f model.Family) int { return [...]int{model.IPv4: 4, model.IPv6: 6}[f] }

// bucketTable is the bucket of each number; the zero bucket is none. Compare what was written with what is wanted.
type bucketTable [maxBucket + 1]bucket

// chains are those of all buckets.
func (t *bucketTable) chains() (all []nft.Chain) {
	for _, b := range t {
		if b != (bucket{}) {
			all = append(all, b.chain())
		}
	}
	return append(all, nft.Chain{Name: chainTurns, Rules: turnsRules()})
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

// buckets gives numbers to buckets, and counts the lists that use each. Copies of it are apart.
type buckets struct {
	byNumber bucketTable
	uses     [maxBucket + 1]int32
	last     bucketNumber
	spare    int // how many have a number and no use
}

// newBuckets has those that are known under their numbers, and those that are always there.
func newBuckets(known bucketTable) *buckets {
	b := &buckets{byNumber: known, last: firstBucket - 1}
	for n, k := range known {
		if k != (bucket{}) {
			b.spare, b.last = b.spare+1, bucketNumber(n)
		}
	}
	for n := range standingBuckets {
		_, _ = b.use(bucket{slots: uint32(n + 1)}) // there is room for these
	}
	return b
}

// use counts a use of a bucket, which gets a number if it has none.
func (b *buckets) use(want bucket) (bucketNumber, error) {
	n, ok := b.find(want)
	if !ok {
		if n, ok = b.free(); !ok {
			return 0, errNoBucket
		}
		b.byNumber[n], b.last = want, n
		b.spare++
	}
	if b.uses[n]++; b.uses[n] == 1 {
		b.spare--
	}
	return n, nil
}

// drop takes back a use.
func (b *buckets) drop(n bucketNumber) {
	if n < firstBucket {
		return
	}
	if b.uses[n]--; b.uses[n] == 0 {
		b.spare++
	}
}

// collect forgets the buckets without use once there are many.
func (b *buckets) collect() {
	if b.spare > spareBuckets {
		b.clear()
	}
}

// clear forgets all buckets without use.
func (b *buckets) clear() {
	for n := range b.byNumber {
		if b.uses[n] == 0 {
			b.byNumber[n] = bucket{}
		}
	}
	b.spare = 0
}

func (b *buckets) find(want bucket) (bucketNumber, bool) {
	for n, have := range b.byNumber {
		if have == want {
			return bucketNumber(n), true
		}
	}
	return 0, false
}

// free finds the next number that nobody has, so that one given up is not used again at once.
func (b *buckets) free() (bucketNumber, bool) {
	if b.spare > 0 && b.full() {
		b.clear()
	}
	for i := range bucketNumber(maxBucket) {
		n := (b.last+i)%bucketNumber(maxBucket) + 1
		if n >= firstBucket && b.byNumber[n] == (bucket{}) {
			return n, true
		}
	}
	return 0, false
}

func (b *buckets) full() bool { return !slices.Contains(b.byNumber[firstBucket:], bucket{}) }
