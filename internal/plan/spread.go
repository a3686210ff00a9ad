package plan

// Spread is a list for backends that take turns: each endpoint is in it as often as its weight says, in the lowest
// terms, and the entries of one are as far apart as can be (smooth weighted round robin). A list of equal weights is
// returned as it is.
func Spread(list []Endpoint) []Endpoint {
	if equalWeights(list) {
		return list
	}
	divisor := commonDivisor(list)
	total := totalWeight(list) / int(divisor)
	out := make([]Endpoint, 0, total)
	credit := make([]int, len(list)) // how much each is behind its share
	for range total {
		next := 0
		for i := range list {
			if credit[i] += int(list[i].Weight / divisor); credit[i] > credit[next] {
				next = i
			}
		}
		credit[next] -= total
		out = append(out, list[next])
	}
	return out
}

// Repeat is Spread for backends that draw: the entries of one endpoint are side by side. It takes a time that grows with
// the list, where that of Spread grows with its square.
func Repeat(list []Endpoint) []Endpoint {
	if equalWeights(list) {
		return list
	}
	divisor := commonDivisor(list)
	out := make([]Endpoint, 0, totalWeight(list)/int(divisor))
	for i := range list {
		for range list[i].Weight / divisor {
			out = append(out, list[i])
		}
	}
	return out
}

func commonDivisor(list []Endpoint) (divisor uint16) {
	for i := range list {
		divisor = gcd(list[i].Weight, divisor)
	}
	return divisor
}

func equalWeights(list []Endpoint) bool {
	for i := range list {
		if list[i].Weight != list[0].Weight {
			return false
		}
	}
	return true
}

func totalWeight(list []Endpoint) (total int) {
	for i := range list {
		total += int(list[i].Weight)
	}
	return total
}

func gcd(a, b uint16) uint16 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
