// Package churn shows that constant change of many Services does no harm to others: a process that has all parts of the
// daemon but its source writes hundreds of changes a second, while clients connect to Services that stay as they are. No
// connection fails, none has to send its first packet twice, and in the end the kernel has what the plan says.
//
// The test takes a few seconds; package bench does the same for longer and tells what it costs.
package churn
