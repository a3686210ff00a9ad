package wire

// subsystem is NFNL_SUBSYS_NFTABLES<<8, linux/netfilter/nfnetlink.h.
const subsystem = 10 << 8

// Kinds of messages, as in a netlink header: subsystem | enum nf_tables_msg_types.
const (
	NewTable uint16 = subsystem + iota
	GetTable
	DelTable
	NewChain
	GetChain
	DelChain
	NewRule
	GetRule
	DelRule
	NewSet
	GetSet
	DelSet
	NewElement
	GetElement
	DelElement
	NewGen
	GetGen
)

// Kinds of messages around a batch, linux/netfilter/nfnetlink.h.
const (
	batchBegin = 16
	batchEnd   = 17
)

// Flags of a message, linux/netlink.h.
const (
	flagRequest = 1
	flagCreate  = 0x400
	flagAppend  = 0x800
)

// Families, linux/netfilter.h.
const (
	FamilyInet uint8 = 1
	FamilyIPv4 uint8 = 2
	FamilyIPv6 uint8 = 10
	// FamilyNetdev has chains at single devices.
	FamilyNetdev uint8 = 5
)

const (
	nested = 1 << 15 // NLA_F_NESTED, linux/netlink.h

	listElem  = 1 // NFTA_LIST_ELEM
	dataValue = 1 // NFTA_DATA_VALUE
	dataCode  = 2 // NFTA_DATA_VERDICT
)

// enum nft_table_attributes
const (
	tableName     = 1
	tableFlags    = 2
	tableHandle   = 4
	tableUserdata = 6

	tableDormant = 1 // enum nft_table_flags
)

// enum nft_chain_attributes
const (
	chainTable    = 1
	chainHandle   = 2
	chainName     = 3
	chainHook     = 4
	chainPolicy   = 5
	chainUse      = 6
	chainType     = 7
	chainUserdata = 12

	hookNumber   = 1 // enum nft_hook_attributes
	hookPriority = 2

	policyAccept = 1 // NF_ACCEPT, linux/netfilter.h
)

// enum nft_rule_attributes
const (
	ruleTable       = 1
	ruleChain       = 2
	ruleHandle      = 3
	ruleExpressions = 4
	ruleUserdata    = 7
)

// enum nft_set_attributes
const (
	setTable    = 1
	setName     = 2
	setFlags    = 3
	setKeyType  = 4
	setKeyLen   = 5
	setDataType = 6
	setDataLen  = 7
	setDesc     = 9
	setID       = 10
	setTimeout  = 11
	setUserdata = 13
	setHandle   = 16
	setExpr     = 17

	descSize   = 1 // enum nft_set_desc_attributes
	descConcat = 2
	fieldLen   = 1 // enum nft_set_field_attributes
)

// enum nft_set_flags
const (
	flagAnonymous = 0x1
	flagConstant  = 0x2
	flagInterval  = 0x4
	flagMap       = 0x8
	flagTimeout   = 0x10
	flagEval      = 0x20
	flagConcat    = 0x80
)

// enum nft_set_elem_list_attributes
const (
	listTable    = 1
	listSet      = 2
	listElements = 3
	listSetID    = 4
)

// enum nft_set_elem_attributes
const (
	elemKey        = 1
	elemData       = 2
	elemFlags      = 3
	elemTimeout    = 4
	elemExpiration = 5
	elemUserdata   = 6
	elemExpr       = 7
	elemKeyEnd     = 10
	elemExprs      = 11

	elemIntervalEnd = 1 // enum nft_set_elem_flags
	elemCatchAll    = 2
)

const genID = 1 // enum nft_gen_attributes

// Verdicts, linux/netfilter.h and enum nft_verdicts.
const (
	codeDrop   int32 = 0
	codeAccept int32 = 1
	codeJump   int32 = -3
	codeGoto   int32 = -4
	codeReturn int32 = -5

	verdictCode  = 1 // enum nft_verdict_attributes
	verdictChain = 2
)

// verdictType is the type of the data of verdict maps, NFT_DATA_VERDICT.
const verdictType = 0xffffff00
