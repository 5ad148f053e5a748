package latchkey

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// member is a field of a struct of an answer.
type member struct {
	name       string
	of         reflect.Type
	isRequired bool
}

// members are the fields of a struct, in their order and by name.
type members struct {
	all    []member
	byName map[string]int
}

// membersByType caches the members of each struct.
var membersByType sync.Map

func membersOf(of reflect.Type) *members {
	if found, isKnown := membersByType.Load(of); isKnown {
		return found.(*members)
	}
	made := &members{byName: map[string]int{}}
	for i := range of.NumField() {
		name, options, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		made.byName[name] = len(made.all)
		made.all = append(made.all, member{name, of.Field(i).Type, options != "omitzero"})
	}
	membersByType.Store(of, made)
	return made
}

// shapeFault returns the place of the first required member that an answer lacks, or that is null. Empty: none. For
// encoding/json, such a member is a zero value.
//
// encoding/json must have read the text as this type: its syntax and its types are not checked again.
func shapeFault(text []byte, of reflect.Type) string {
	walk := shapeWalk{text: text}
	return strings.TrimPrefix(walk.value(of, false), ".")
}

// shapeWalk goes through a valid text once. Its methods return a place and what is wrong there, or nothing.
type shapeWalk struct {
	text []byte
	at   int
}

// value reads a value. It may be anything if its type is nil.
func (w *shapeWalk) value(of reflect.Type, mayBeNull bool) string {
	for of != nil && of.Kind() == reflect.Pointer {
		of, mayBeNull = of.Elem(), true
	}
	switch w.next() {
	case '{':
		return w.object(of)
	case '[':
		return w.list(of)
	case '"':
		w.quoted()
	case 'n':
		w.word()
		if of != nil && !mayBeNull {
			return " is null"
		}
	default:
		w.word()
	}
	return ""
}

func (w *shapeWalk) object(of reflect.Type) string {
	known := &members{}
	var each reflect.Type
	switch {
	case of == nil:
	case of.Kind() == reflect.Struct:
		known = membersOf(of)
	case of.Kind() == reflect.Map && of.Elem().Kind() != reflect.Interface:
		each = of.Elem()
	}
	isPresent := make([]bool, len(known.all))
	for w.at++; w.next() != '}'; {
		if w.text[w.at] == ',' {
			w.at++
			continue
		}
		name := w.name()
		w.next() // The colon.
		w.at++
		found := member{name: name, of: each}
		if i, isKnown := known.byName[name]; isKnown {
			found, isPresent[i] = known.all[i], true
		}
		if fault := w.value(found.of, !found.isRequired); fault != "" {
			return "." + name + fault
		}
	}
	w.at++
	for i, is := range isPresent {
		if !is && known.all[i].isRequired {
			return "." + known.all[i].name + " is missing"
		}
	}
	return ""
}

func (w *shapeWalk) list(of reflect.Type) string {
	var entry reflect.Type
	if of != nil && of.Kind() == reflect.Slice {
		entry = of.Elem()
	}
	i := 0
	for w.at++; w.next() != ']'; {
		if w.text[w.at] == ',' {
			w.at++
			i++
			continue
		}
		if fault := w.value(entry, false); fault != "" {
			return fmt.Sprintf("[%d]%s", i, fault)
		}
	}
	w.at++
	return ""
}

// name reads the name of a member.
func (w *shapeWalk) name() string {
	quoted := w.quoted()
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var name string
	_ = json.Unmarshal(quoted, &name)
	return name
}

// next returns the next byte that is not white space.
func (w *shapeWalk) next() byte {
	for w.text[w.at] <= ' ' {
		w.at++
	}
	return w.text[w.at]
}

// quoted reads a string, and returns it with its quotation marks.
func (w *shapeWalk) quoted() []byte {
	start := w.at
	for w.at++; w.text[w.at] != '"'; w.at++ {
		if w.text[w.at] == '\\' {
			w.at++
		}
	}
	w.at++
	return w.text[start:w.at]
}

// word reads a number, true, false or null.
func (w *shapeWalk) word() {
	for w.at < len(w.text) && !bytes.ContainsRune([]byte(",]} \t\r\n"), rune(w.text[w.at])) {
		w.at++
	}
}
