package wire

// register numbers the 32-bit words of the registers: 0 is the first of data. Registers of 16 bytes begin at every
// fourth.
type register int

// words of the register of a verdict, NFT_REG_VERDICT.
const verdictRegister = 0

// number is the kernel's number: that of a whole register of 16 bytes at its first word, as nft does, else of the word.
// enum nft_registers: NFT_REG_1 is 1, NFT_REG32_00 is 8, and both are the same place.
func (r register) number() uint32 {
	if r%4 == 0 {
		return 1 + uint32(r)/4
	}
	return 8 + uint32(r)
}

// behind is the first whole register behind so many words.
func behind(words int) register { return register((words + 3) &^ 3) }

// wordsOf is the number of words that so many bytes take.
func wordsOf(bytes int) int { return (bytes + 3) / 4 }
