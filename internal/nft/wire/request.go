package wire

import "sluice/internal/nft"

// Requests are a kind of message and its data, from struct nfgenmsg on, for a dump.

// ListTables asks for the tables of a family; 0: of all.
func ListTables(family uint8) (kind uint16, data []byte) { return GetTable, request(family) }

// ListChains asks for the chains of all tables of a family; 0: of all.
func ListChains(family uint8) (kind uint16, data []byte) { return GetChain, request(family) }

// ListSets asks for the sets of a table of family inet.
func ListSets(table string) (kind uint16, data []byte) {
	a := request(FamilyInet)
	a.text(setTable, table)
	return GetSet, a
}

// ListRules asks for the rules of a table; an empty chain stands for all.
func ListRules(family uint8, table, chain string) (kind uint16, data []byte) {
	a := request(family)
	a.text(ruleTable, table)
	if chain != "" {
		a.text(ruleChain, chain)
	}
	return GetRule, a
}

// ListElements asks for the elements of a set of a table of family inet.
func ListElements(table, set string) (kind uint16, data []byte) {
	a := request(FamilyInet)
	a.text(listTable, table)
	a.text(listSet, set)
	return GetElement, a
}

// FindElement asks for the element at a key, an empty one for that of all other keys. It is no dump.
func FindElement(table string, s *nft.Set, key nft.Value) (kind uint16, data []byte) {
	a := request(FamilyInet)
	a.text(listTable, table)
	a.text(listSet, s.Name)
	at := a.nest(listElements)
	element := a.nest(listElem)
	a.key(&key, keyLen(s.Key))
	a.close(element)
	a.close(at)
	return GetElement, a
}

func request(family uint8) attrs { return attrs{family, 0, 0, 0} }
