package nftables

import "slices"

const (
	// standingBuckets is up to how many slots a chain is there where there are many endpoints. To make one later costs
	// the kernel a walk through all of them, but each that is there costs it a look for every endpoint that is loaded, an
	// eighth as much: so there are those for the numbers that few clusters do without.
	standingBuckets = 4
	// spareBuckets is how many are kept though no list needs them: a Deployment that scales up and down comes
	// back to the same few numbers.
	spareBuckets = 16
)

// buckets gives numbers to buckets, and counts the lists that use each. Copies of it are apart.
type buckets struct {
	byNumber bucketTable
	uses     [maxBucket + 1]int32
	idle     [maxBucket + 1]bool // had no use since collect was last called
	last     bucketNumber
	spare    int // how many have a number and no use
	standing bool
}

// newBuckets has those that are known, under their numbers.
func newBuckets(known bucketTable) *buckets {
	b := &buckets{byNumber: known, last: firstBucket - 1}
	for n, k := range known {
		if k != (bucket{}) {
			b.spare, b.last = b.spare+1, bucketNumber(n)
		}
	}
	return b
}

// stand keeps the buckets of few slots from now on, used or not, as far as there are numbers for them.
func (b *buckets) stand() {
	if b.standing {
		return
	}
	b.standing = true
	for n := range standingBuckets {
		_, _ = b.use(bucket{slots: uint32(n + 1)})
	}
}

// use counts a use of a bucket, which gets a number if it has none. It is not ok if there is no number left.
func (b *buckets) use(want bucket) (n bucketNumber, ok bool) {
	n, ok = b.find(want)
	if !ok {
		if n, ok = b.free(); !ok {
			return 0, false
		}
		b.byNumber[n], b.last = want, n
		b.spare++
	}
	if b.uses[n]++; b.uses[n] == 1 {
		b.spare--
	}
	b.idle[n] = false
	return n, true
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

// collect forgets the buckets without use once there are many: those that had none the last time either, since packets on
// their way may still be led to others.
func (b *buckets) collect() {
	many := b.spare > spareBuckets
	for n := range b.byNumber {
		if many && b.idle[n] && b.byNumber[n] != (bucket{}) {
			b.byNumber[n] = bucket{}
			b.spare--
		}
		b.idle[n] = b.uses[n] == 0
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
	for n := range b.byNumber {
		if b.byNumber[n] == want {
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
