package manifest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"sluice/internal/model"
	"sluice/internal/source/convert"
)

// document is what one document says. It depends on the text alone, so it is made once for each text.
type document struct {
	sum digest
	// text is empty once nobody asks for the line of a field any more; see forget.
	text    string
	begin   int // the line that the content begins on
	objects []*object
	// problems are those of the text itself. One that is an error hides which objects the document is about.
	problems []problem
	height   int // in lines
	lines    lines
}

// id tells one object from another. A Node's and a ServiceCIDR's have no namespace.
type id struct {
	kind string // with the API version, if the kind is not used: another API may have a kind of the same name
	name model.Name
}

// String is such as "Service default/web", or "Service" for one without a name.
func (i id) String() string {
	switch {
	case i.name.Name == "":
		return i.kind
	case i.name.Namespace == "":
		return i.kind + " " + i.name.Name
	}
	return i.kind + " " + i.name.String()
}

// object is one object of a document.
type object struct {
	id   id
	path string // within the document; empty for the document itself
	// value is what the object means: a service, slice, endpoints, *convert.Pod, *model.Node, *model.ServiceCIDR,
	// convert.PodTemplate or unused; nil if the object is wrong.
	value    any
	problems []problem
}

// problem is a convert.Problem and its line, counted from 1 within the document.
type problem struct {
	convert.Problem
	line int
}

// header is the part that objects of all kinds share.
type header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	// Items is nil where there is no such field, and may be null where the List is empty.
	Items json.RawMessage `json:"items"`
}

// maxNesting bounds Lists within Lists. Real ones nest once at most.
const maxNesting = 8

// decode reads one document.
func decode(text string) *document {
	d := &document{text: text, height: 1 + strings.Count(text, "\n")}
	js, err := toJSON(text)
	if err != nil {
		d.syntaxError(err)
		return d
	}
	if string(js) == "null" {
		return d
	}
	d.add(js, "", header{}, 0)
	d.locate()
	return d
}

func toJSON(text string) ([]byte, error) {
	if strings.HasPrefix(text, "{") && json.Valid([]byte(text)) {
		return []byte(text), nil
	}
	js, err := yaml.YAMLToJSONStrict([]byte(text))
	if err == nil {
		return js, nil
	}
	// The strict parser takes a key that overrides a merged one ("<<") for one that is given twice; this one does not.
	var anything any
	if yamlv3.Unmarshal([]byte(text), &anything) != nil {
		return nil, err
	}
	return yaml.YAMLToJSON([]byte(text))
}

// add adds the object in js, or the objects if it is a List. What it does not say of itself is taken from implied.
func (d *document) add(js []byte, path string, implied header, depth int) {
	if js[0] != '{' {
		d.fail(path, "not an object")
		return
	}
	head := implied
	// A field of a wrong type shows when the object is decoded as what it is.
	_ = kjson.UnmarshalCaseSensitivePreserveInts(js, &head)
	switch {
	case head.Kind == "":
		d.fail(join(path, "kind"), "required")
	case head.APIVersion == "":
		d.fail(join(path, "apiVersion"), "required")
	case head.Items != nil && strings.HasSuffix(head.Kind, "List"):
		d.addList(head.Items, path, head, depth)
	default:
		o := &object{id: idOf(head), path: path}
		o.decode(head, js)
		d.objects = append(d.objects, o)
	}
}

func (d *document) addList(items json.RawMessage, path string, list header, depth int) {
	path = join(path, "items")
	var elements []json.RawMessage
	if err := json.Unmarshal(items, &elements); err != nil {
		d.fail(path, "must be a list")
		return
	}
	if depth == maxNesting {
		d.fail(path, "Lists are nested too deeply")
		return
	}
	implied := header{}
	if list.Kind != "List" {
		implied = header{APIVersion: list.APIVersion, Kind: strings.TrimSuffix(list.Kind, "List")}
	}
	for i, element := range elements {
		d.add(element, fmt.Sprintf("%s[%d]", path, i), implied, depth+1)
	}
}

// fail notes an Error that leaves open which objects are meant.
func (d *document) fail(field, message string) {
	d.problems = append(d.problems, problem{Problem: convert.Problem{Field: field, Message: message, Skipped: true}})
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

// syntaxError takes the line out of the parser's message, since it counts from the start of the document.
func (d *document) syntaxError(err error) {
	d.fail("", "")
	p := &d.problems[0]
	message := strings.Join(strings.Fields(yamlLine.ReplaceAllString(err.Error(), "")), " ")
	p.Message = "not YAML: " + strings.TrimPrefix(strings.TrimPrefix(message, "yaml: "), "unmarshal errors: ")
	p.line = 1
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		p.line, _ = strconv.Atoi(m[1])
	}
}

func join(path, field string) string {
	if path == "" || field == "" {
		return path + field
	}
	return path + "." + field
}
