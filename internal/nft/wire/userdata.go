package wire

import (
	"encoding/binary"

	"sluice/internal/nft"
)

// User data is a list of type, length and value that the kernel keeps for nft, by the numbers of libnftnl's udata.h.
const (
	udataComment = 0 // of tables, chains, rules and elements

	udataKeyOrder     = 0 // of sets
	udataDataOrder    = 1
	udataKeyTypeof    = 3
	udataDataTypeof   = 4
	udataDataInterval = 6
	udataSetComment   = 7

	udataElemFlags   = 1 // of elements
	elemOpenInterval = 1 // a range without an end

	typeofExpr = 0
	typeofData = 1

	// udataHash is ours. nft passes over what it does not know.
	udataHash = 0xd5
)

// Byte orders in user data, nft's enum byteorder.
const (
	orderNone    = 0 // of several fields, or of a byte
	orderHost    = 1
	orderNetwork = 2
)

// Expressions in user data, nft's enum expr_types.
const (
	exprVerdict = 1
	exprPayload = 7
	exprMeta    = 9
	exprConcat  = 13
	exprNumgen  = 23
)

func (a *attrs) udataUint32(kind uint8, n uint32) {
	*a = append(*a, kind, 4)
	*a = binary.NativeEndian.AppendUint32(*a, n)
}

func (a *attrs) udataText(kind uint8, s string) {
	*a = append(*a, kind, uint8(len(s)+1))
	*a = append(append(*a, s...), 0)
}

func (a *attrs) udataOpen(kind uint8) (at int) {
	*a = append(*a, kind, 0)
	return len(*a)
}

func (a *attrs) udataClose(at int) { (*a)[at-1] = uint8(len(*a) - at) }

// comment appends an attribute of user data with nothing but a comment.
func (b *Batch) comment(kind uint16, udata uint8, comment string) {
	if comment == "" {
		return
	}
	at := b.buf.open(kind)
	b.buf.udataText(udata, nft.CleanComment(comment))
	b.buf.close(at)
}

func (b *Batch) setUserdata(s *nft.Set) {
	at := b.buf.open(setUserdata)
	b.buf.udataUint32(udataKeyOrder, orderOf(s.Key))
	isMap := s.Verdicts || len(s.Data) > 0
	if isMap {
		b.buf.udataUint32(udataDataOrder, orderOf(s.Data))
	}
	byExpression := nft.ByExpression(s.Key) || nft.ByExpression(s.Data)
	b.buf.typeof(udataKeyTypeof, s.Key, byExpression)
	if s.Verdicts && byExpression {
		at := b.buf.udataOpen(udataDataTypeof)
		b.buf.udataUint32(typeofExpr, exprVerdict)
		b.buf.udataClose(b.buf.udataOpen(typeofData))
		b.buf.udataClose(at)
	}
	b.buf.typeof(udataDataTypeof, s.Data, byExpression)
	if isMap {
		b.buf.udataUint32(udataDataInterval, 0)
	}
	if s.Comment != "" {
		b.buf.udataText(udataSetComment, nft.CleanComment(s.Comment))
	}
	b.buf.close(at)
}

func orderOf(fields []nft.Field) uint32 {
	switch {
	case len(fields) != 1 || fields[0].Type == nft.InetProto:
		return orderNone
	case fields[0].Type.HostOrder():
		return orderHost
	}
	return orderNetwork
}

// typeof tells nft by which expressions a key or data is declared. Without any it still tells that it is a concatenation,
// as nft does.
func (a *attrs) typeof(kind uint8, fields []nft.Field, byExpression bool) {
	switch {
	case len(fields) > 1:
		at := a.udataOpen(kind)
		a.udataUint32(typeofExpr, exprConcat)
		data := a.udataOpen(typeofData)
		for i, f := range fields {
			if byExpression {
				field := a.udataOpen(uint8(i))
				a.like(f.Expr())
				a.udataClose(field)
			}
		}
		a.udataClose(data)
		a.udataClose(at)
	case len(fields) == 1 && byExpression:
		at := a.udataOpen(kind)
		a.like(fields[0].Expr())
		a.udataClose(at)
	}
}

// like appends one expression that declares a field.
func (a *attrs) like(e nft.Expr) {
	switch e := e.(type) {
	case nft.Meta:
		a.udataUint32(typeofExpr, exprMeta)
		data := a.udataOpen(typeofData)
		a.udataUint32(0, metaOf(e).key)
		a.udataClose(data)
	case nft.Payload:
		p := payloadOf(e)
		a.udataUint32(typeofExpr, exprPayload)
		data := a.udataOpen(typeofData)
		a.udataUint32(0, p.header)
		a.udataUint32(1, p.field)
		a.udataClose(data)
	case nft.Numgen:
		a.udataUint32(typeofExpr, exprNumgen)
		data := a.udataOpen(typeofData)
		a.udataUint32(0, numgenWay(e))
		a.udataUint32(1, e.Mod)
		a.udataUint32(2, 0) // offset
		a.udataClose(data)
	default:
		panicUnknown("declaration", e)
	}
}
