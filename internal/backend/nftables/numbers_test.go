package nftables

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice/internal/model"
)

func TestNumbers(t *testing.T) {
	n := numbers{max: 3}
	for _, want := range []uint32{1, 2, 3} {
		if got, err := n.take(); got != want || err != nil {
			t.Fatalf("take: %d, %v, want %d", got, err, want)
		}
	}
	if got, err := n.take(); err == nil {
		t.Fatalf("take: %d though all are given out", got)
	}
	n.give(2)
	n.give(1)
	if got, _ := n.take(); got != 1 {
		t.Errorf("take: %d after the last one, want 1", got)
	}
	if n.reserve(3) || n.reserve(0) || n.reserve(4) || !n.reserve(2) {
		t.Error("reserve takes what is given out or not a number, or refuses what is free")
	}
}

// TestNumberIsNotUsedAgainAtOnce: with one number given out at a time, all others come before it comes again.
func TestNumberIsNotUsedAgainAtOnce(t *testing.T) {
	n := numbers{max: 100}
	for i := range uint32(250) {
		got, err := n.take()
		if want := i%100 + 1; got != want || err != nil {
			t.Fatalf("take: %d, %v, want %d", got, err, want)
		}
		n.give(got)
	}
}

func TestNextAffine(t *testing.T) {
	for _, tt := range []struct {
		last uint16
		used []uint16
		want uint16
	}{
		{0, nil, 1},
		{4, []uint16{5, 6, 0}, 7},
		{maxAffine, []uint16{1}, 2},
	} {
		if got := nextAffine(tt.last, tt.used); got != tt.want {
			t.Errorf("after %d beside %v: %d, want %d", tt.last, tt.used, got, tt.want)
		}
	}
}

func (r route) bucket() bucketNumber   { return bucketNumber(uint32(r) & maskBucket >> shiftBucket) }
func (r route) masquerade() masquerade { return masquerade(uint32(r) & maskMasquerade) }

func TestRoute(t *testing.T) {
	r := newRoute(0xfffff, 1023, masqueradeNode)
	if r != 0xffffffff || r.list() != 0xfffff || r.bucket() != 1023 || r.masquerade() != masqueradeNode {
		t.Errorf("%x: %x %d %d", r, r.list(), r.bucket(), r.masquerade())
	}
	if r := newRoute(2, 3, masqueradeNoPods); r != 0x200d || r.list().key() != 0x2000 || r.bucket().key() != 0xc {
		t.Errorf("%x: %x %x", r, r.list().key(), r.bucket().key())
	}
}

func TestBucketNames(t *testing.T) {
	for name, want := range map[string]bucket{
		"random-3":           {slots: 3},
		"affinity4-3-10800s": {slots: 3, timeout: 10800},
		"affinity6-1-1s":     {slots: 1, timeout: 1, family: model.IPv6},
	} {
		if got, ok := bucketOf(name); got != want || !ok || want.name() != name {
			t.Errorf("%s: %v, %v; %v is called %s", name, got, ok, want, want.name())
		}
	}
	for _, name := range []string{"", "random-", "random-03", "random-3-", "random-x", "random-0", "affinity4-0-5s", "affinity4-3", "affinity4-3-5", "affinity5-3-5s", "round-robin", "round-robin-3", "outside4"} {
		if got, ok := bucketOf(name); ok {
			t.Errorf("%q is taken for %v", name, got)
		}
	}
}

// TestBuckets uses buckets and takes the uses back at random: those in use keep their numbers, and none is lost. At some
// time those of few slots may be made to stay.
func TestBuckets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBuckets(bucketTable{})
		used := map[bucketNumber]int{}
		numbers := map[bucketNumber]bucket{}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			if len(used) > 0 && rapid.Bool().Draw(t, "drop") {
				n := rapid.SampledFrom(slices.Sorted(maps.Keys(used))).Draw(t, "dropped")
				if b.drop(n); used[n] == 1 {
					delete(used, n)
				} else {
					used[n]--
				}
			} else {
				want := bucket{slots: rapid.Uint32Range(1, 60).Draw(t, "slots")}
				n, ok := b.use(want)
				if !ok {
					t.Fatal("there is no number left")
				}
				used[n]++
				numbers[n] = want
			}
			switch rapid.IntRange(0, 19).Draw(t, "then") {
			case 0, 1:
				b.collect()
			case 2:
				b.stand()
			}
			b.check(t, used, numbers)
		}
	})
}

func (b *buckets) check(t *rapid.T, used map[bucketNumber]int, numbers map[bucketNumber]bucket) {
	spare, stands, seen := 0, 0, map[bucket]bool{}
	for n, have := range b.byNumber {
		number, standing := bucketNumber(n), int32(0)
		if b.standing && have.slots >= 1 && have.slots <= standingBuckets {
			standing = 1
			stands++
		}
		if b.uses[n] != int32(used[number])+standing || used[number] > 0 && have != numbers[number] {
			t.Fatalf("number %d is %v with %d uses, want %v with %d", n, have, b.uses[n], numbers[number], used[number])
		}
		if have == (bucket{}) {
			continue
		}
		if seen[have] {
			t.Fatalf("%v has two numbers", have)
		}
		if seen[have] = true; b.uses[n] == 0 {
			spare++
		}
	}
	if spare != b.spare {
		t.Fatalf("%d are spare, not %d", spare, b.spare)
	}
	if b.standing && stands != standingBuckets {
		t.Fatalf("%d stand, not %d", stands, standingBuckets)
	}
}

func TestBucketsRunOut(t *testing.T) {
	b := newBuckets(bucketTable{})
	var first bucketNumber
	for i := range 1021 {
		n, ok := b.use(bucket{slots: uint32(100 + i)})
		if !ok {
			t.Fatalf("no number is left after %d", i)
		}
		if i == 0 {
			first = n
		}
	}
	if n, ok := b.use(bucket{slots: 50}); ok {
		t.Fatalf("number %d though all are in use", n)
	}
	b.drop(first)
	if b.stand(); b.byNumber[first] != (bucket{slots: 1}) || b.spare != 0 {
		t.Errorf("%v has the number that nobody used, and %d are spare", b.byNumber[first], b.spare)
	}
	b.drop(first)
	if n, ok := b.use(bucket{slots: 50}); n != first || !ok {
		t.Errorf("number %d, %v, want %d, which nobody uses", n, ok, first)
	}
}

// A chain that lists were balanced by until now goes with a later Apply than they.
func TestBucketsAreCollectedLater(t *testing.T) {
	b := newBuckets(bucketTable{})
	for i := range uint32(spareBuckets) {
		n, _ := b.use(bucket{slots: 1 + i})
		b.drop(n)
	}
	b.collect()
	last, _ := b.use(bucket{slots: 100})
	b.collect()
	b.drop(last)
	if b.collect(); b.byNumber[last] == (bucket{}) || b.spare != 1 {
		t.Errorf("number %d is %v, and %d are spare; want what was used until now alone", last, b.byNumber[last], b.spare)
	}
}
