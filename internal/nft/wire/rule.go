package wire

import (
	"encoding/binary"
	"hash/fnv"
	"io"

	"sluice/internal/nft"
)

// AddRule appends a rule to a chain. Lists of constants become anonymous sets, which live and die with it.
func (b *Batch) AddRule(chain string, r *nft.Rule) {
	first := b.sets + 1
	for _, s := range r.Statements {
		if list, ok := s.(nft.OneOf); ok {
			b.anonymousSet(list)
		}
	}
	b.start(NewRule, flagCreate|flagAppend, subject{"rule of chain", chain})
	b.buf.text(ruleTable, b.table)
	b.buf.text(ruleChain, chain)
	at := b.buf.nest(ruleExpressions)
	c := coder{attrs: &b.buf, set: first}
	for _, s := range r.Statements {
		c.statement(s)
	}
	b.buf.close(at)
	b.ruleUserdata(r)
	b.endMessage()
}

// DeleteRule deletes one rule of a chain.
func (b *Batch) DeleteRule(chain string, handle uint64) {
	b.start(DelRule, 0, subject{"rule of chain", chain})
	b.buf.text(ruleTable, b.table)
	b.buf.text(ruleChain, chain)
	b.buf.uint64(ruleHandle, handle)
	b.endMessage()
}

func (b *Batch) ruleUserdata(r *nft.Rule) {
	at := b.buf.open(ruleUserdata)
	if r.Comment != "" {
		b.buf.udataText(udataComment, nft.CleanComment(r.Comment))
	}
	hash := b.buf.udataOpen(udataHash)
	b.buf = binary.BigEndian.AppendUint64(b.buf, Hash(r))
	b.buf.udataClose(hash)
	b.buf.close(at)
}

// encoding goes into every rule's hash. It is to be raised when the same text is encoded otherwise, so that rules of an
// earlier version are not taken for ours.
const encoding = "1 "

// Hash is what tells one rule from another in the kernel, where it cannot be altered: it stands in the user data of
// every rule of ours. It is never 0.
func Hash(r *nft.Rule) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, encoding)
	_, _ = io.WriteString(h, r.String())
	return max(h.Sum64(), 1)
}

// anonymousName has the kernel find a name that is free.
const anonymousName = "__set%d"

func (b *Batch) anonymousSet(s nft.OneOf) {
	b.sets++
	fields := []nft.Field{{Type: s.Type, Like: s.Left}}
	b.start(NewSet, flagCreate, subject{"set of constants", ""})
	b.setHead(anonymousName, flagAnonymous|flagConstant, typeNumber(fields), uint32(s.Type.Size()))
	b.buf.uint32(setID, b.sets)
	desc := b.buf.nest(setDesc)
	b.buf.uint32(descSize, uint32(len(s.List)))
	b.buf.close(desc)
	data := b.buf.open(setUserdata)
	b.buf.udataUint32(udataKeyOrder, orderHost) // as nft does for meta; the kernel pays no heed
	b.buf.typeof(udataKeyTypeof, fields, true)
	b.buf.close(data)
	b.endMessage()

	b.start(NewElement, flagCreate, subject{"set of constants", ""})
	b.buf.text(listTable, b.table)
	b.buf.text(listSet, anonymousName)
	b.buf.uint32(listSetID, b.sets)
	at := b.buf.nest(listElements)
	for i := range s.List {
		e := b.buf.nest(listElem)
		b.buf.value(elemKey, &s.List[i], s.Type.Size())
		b.buf.close(e)
	}
	b.buf.close(at)
	b.endMessage()
}
