package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"sluice/internal/testkit/golden"
)

// The table of docs/configuration.md is of all settings and flags.
func TestDocumentation(t *testing.T) {
	var b strings.Builder
	b.WriteString("| field | flag | what it is, or why it has no effect | while running |\n|---|---|---|---|\n")
	for _, s := range settings {
		flag := ""
		if s.flag != "" {
			flag = "`--" + s.flag + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.path, flagOf(flag, s.path), does(s), live(s))
	}
	b.WriteString("\n| flag without a field of its own | what it is |\n|---|---|\n")
	for _, f := range otherFlags(t) {
		fmt.Fprintf(&b, "| `--%s` | %s |\n", f.Name, plain(f.Usage))
	}
	b.WriteString("\n| feature gate | what becomes of it |\n|---|---|\n")
	fmt.Fprintf(&b, "| `%s` | off: external IPs of Services are not served |\n", gateExternalIPs)
	fmt.Fprintf(&b, "| `%s` | off: the log can only be text |\n", gateJSONLog)
	fmt.Fprintf(&b, "| `%s` | off: mode ipvs is refused |\n", gateIPVS)
	fmt.Fprintf(&b, "| `%s` | on: in mode nftables a proxy serves node ports at the loopback addresses that nodePortAddresses name, of both families; off: rules do, at those of IPv4 |\n", gateLocalhost)
	for _, name := range slices.Sorted(maps.Keys(gatesInVain)) {
		fmt.Fprintf(&b, "| `%s` | no effect: %s |\n", name, gatesInVain[name])
	}
	b.WriteString("| `AllAlpha`, `AllBeta` | set all gates of their stage that nothing else sets |\n| every other of kube-proxy's | no effect: nothing in Sluice depends on it |\n")
	golden.Excerpt(t, "../../docs/configuration.md", b.String())
}

// flagOf is the flag that says a field: its own, or one declared apart.
func flagOf(flag, path string) string {
	apart := map[string]string{
		"featureGates": "`--feature-gates`", "mode": "`--mode`, `--proxy-mode`", "logging.verbosity": "`--v`, `-v`", "logging.vmodule": "`--vmodule`",
		"logging.options.text.infoBufferSize": "`--log-text-info-buffer-size`", "logging.options.json.infoBufferSize": "`--log-json-info-buffer-size`",
		"hostnameOverride": "`--hostname-override`, `--node`",
	}
	for _, s := range settings {
		if slices.Contains(s.also, path) {
			flag = "`--" + s.flag + "`"
		}
	}
	if text, ok := apart[path]; ok {
		return text
	}
	return flag
}

func does(s setting) string {
	if s.vain != "" {
		return "no effect: " + s.vain
	}
	return plain(s.usage)
}

func live(s setting) string {
	switch {
	case s.vain != "":
		return ""
	case s.restart != "":
		return "at the next start: " + s.restart
	}
	return "changes at once"
}

// plain is a flag's usage without the marks of its placeholder, for a cell of a table.
func plain(usage string) string {
	return strings.ReplaceAll(strings.ReplaceAll(usage, "`", ""), "|", "\\|")
}

// otherFlags are those that no setting names and that are no other name of one.
func otherFlags(t *testing.T) (flags []*pflag.Flag) {
	t.Helper()
	set := pflag.NewFlagSet("docs", pflag.ContinueOnError)
	NewFlags(set).Daemon()
	named := []string{"node", "feature-gates", "v", "vmodule", "log-text-info-buffer-size", "log-json-info-buffer-size"}
	for _, s := range settings {
		named = append(named, s.flag)
	}
	set.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(named, f.Name) {
			flags = append(flags, f)
		}
	})
	return flags
}
