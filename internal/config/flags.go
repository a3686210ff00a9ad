package config

import (
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Flags are kube-proxy's flags on a command line, and the file that --config names.
type Flags struct {
	// File is the path of a KubeProxyConfiguration; empty: none.
	File string
	once bool // it was loaded, and is of a kind that cannot be read again
	set  *pflag.FlagSet
	to   map[string]func(*Values) error
}

// NewFlags declares the flags that every verb with a plan has in set, which must be parsed before [Flags.Load].
func NewFlags(set *pflag.FlagSet) *Flags {
	f := newFlags(set)
	f.declareAll(true)
	f.declare(setting{path: "hostnameOverride", flag: "node", is: "", usage: "the `name` of the Node that this machine is; default: the Node named as the host, or the only one there is"})
	return f
}

// NewCleanupFlags is NewFlags for a verb that has no plan and removes what is left.
func NewCleanupFlags(set *pflag.FlagSet) *Flags {
	f := newFlags(set)
	for _, s := range settings {
		if s.path == "ipvs.excludeCIDRs" {
			f.declare(s)
		}
	}
	return f
}

// newFlags declares the file.
func newFlags(set *pflag.FlagSet) *Flags {
	f := &Flags{set: set, to: map[string]func(*Values) error{}}
	set.StringVar(&f.File, "config", "", "read this `file`, a KubeProxyConfiguration; flags given as well win over it")
	return f
}

// Mode declares --mode, and kube-proxy's name for it; usage says what the verb takes.
func (f *Flags) Mode(usage string) {
	for _, name := range []string{"mode", "proxy-mode"} {
		f.declare(setting{path: "mode", flag: name, is: "", usage: usage})
	}
	f.set.Lookup("proxy-mode").Hidden = true
}

// Load reads the file and then the flags that were given. The warnings are for the user; they stop nothing.
func (f *Flags) Load() (Config, []string, error) {
	v := newValues()
	var warnings []string
	if f.File != "" {
		var err error
		f.once = readAgain(f.File) != nil
		if warnings, err = v.read(f.File); err != nil {
			return Config{}, warnings, err
		}
	}
	var err error
	f.set.Visit(func(flag *pflag.Flag) {
		if assign, ok := f.to[flag.Name]; ok && err == nil {
			err = assign(&v)
		}
	})
	if err != nil {
		return Config{}, warnings, err
	}
	c, more, err := v.Resolve()
	return c, append(warnings, more...), err
}

// declareAll declares the flags of settings that are on every verb, or those that are not.
func (f *Flags) declareAll(everywhere bool) {
	for _, s := range settings {
		if s.flag != "" && s.everywhere == everywhere {
			f.declare(s)
		}
	}
}

// declare declares one flag, of the type that its default has. What has no effect is not listed.
func (f *Flags) declare(s setting) {
	value := f.variable(s)
	paths := append([]string{s.path}, s.also...)
	f.to[s.flag] = func(v *Values) error {
		for _, path := range paths {
			v.assign(path, s.flag, value())
		}
		return nil
	}
	f.set.Lookup(s.flag).Hidden = s.vain != ""
}

// variable makes the variable of a flag, and returns what reads it.
func (f *Flags) variable(s setting) func() any {
	switch is := s.is.(type) {
	case bool:
		return reads(f.set.Bool(s.flag, is, s.usage))
	case int32:
		return reads(f.set.Int32(s.flag, is, s.usage))
	case float32:
		return reads(f.set.Float32(s.flag, is, s.usage))
	case time.Duration:
		return reads(f.set.Duration(s.flag, is, s.usage))
	case []string:
		return reads(f.set.StringSlice(s.flag, is, s.usage))
	default:
		return reads(f.set.String(s.flag, is.(string), s.usage))
	}
}

func reads[T any](variable *T) func() any { return func() any { return *variable } }

// withDashes takes a flag's name with underscores for one with dashes, as kube-proxy does.
func withDashes(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
}
