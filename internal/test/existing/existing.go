// Package existing lists what versions of the existing operator leave on a host and its Node: its files, services and
// annotations. Tests put them on a simulated host and adopt it.
//
//	fact: a path, a service or an annotation, and the line of its source in each generation --Of--> Furnishing of one generation
//
// Each line names its place in github.com/openshift/windows-machine-config-operator. Values are composed
// of the constants there.
package existing

import (
	"fmt"
	"slices"
)

// Source is the repository that places are in.
const Source = "github.com/openshift/windows-machine-config-operator"

// Generation is a branch of the existing operator.
type Generation struct {
	// Name is its version up to the minor one; Version that of the annotations of its nodes; Commit that of the places.
	Name, Version, Commit string
}

// Generations returns all, the oldest first.
func Generations() []Generation {
	return []Generation{
		{"10.16", "10.16.3-3819d84c5", "3819d84c5"},    // branch release-4.16, Makefile, WMCO_VERSION
		{"10.17", "10.17.2-2b1f4d9c7", "2b1f4d9c7"},    // release-4.17
		{"10.18", "10.18.3-664cb5945", "664cb5945"},    // release-4.18
		{"10.19", "10.19.3-f289afcad", "f289afcad"},    // release-4.19
		{"10.20", "10.20.2-0a2aa0094", "0a2aa0094"},    // release-4.20
		{"10.21", "10.21.2-a08bcc324", "a08bcc324"},    // release-4.21
		{"10.22", "10.22.2-1f721cdc6", "1f721cdc6"},    // release-4.22
		{"11.0", "11.0.0-4d7dac262", "4d7dac262"},      // release-5.0
		{"main", "11.0.0-main-0be4b9ccb", "0be4b9ccb"}, // master
	}
}

// lines are the line of a place in each generation, in the order of Generations; 0 where a generation has no such
// thing.
type lines [9]int

// fact is something that some generations leave.
type fact struct {
	// name is a path, the name of a service, or an annotation; text the content of a file or the command of a service.
	name, text string
	// file is that of the place.
	file  string
	lines lines
}

// factPlace returns where a generation has it, empty if it does not.
func (f fact) factPlace(generation int) string {
	if f.lines[generation] == 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d", f.file, f.lines[generation])
}

// Item is something that one generation leaves.
type Item struct {
	// Name is a path, the name of a service, or an annotation; Text the content of a file or the command of a service.
	Name, Text string
	// Place is the file and the line in the source of the generation.
	Place string
}

// Furnishing is what one generation leaves.
type Furnishing struct {
	Generation
	// Back reports whether what this operator has left stays: the existing one knows nothing of that.
	Back bool
	// Files are on the host, Absent are files of other generations, which are not.
	Files, Absent []Item
	// Services have other commands than those of this operator. NODE_NAME, NODE_SUBNET and ENDPOINT_IP in them are
	// replaced by its agent.
	Services []Item
	// Annotations are on the Node. That of the user name is on those of instances alone.
	Annotations []Item
}

// Agent is the program of its agent.
const Agent = folder + `windows-instance-config-daemon.exe`

// ReadGeneration returns what a generation leaves, by its name.
func ReadGeneration(name string) (Furnishing, error) {
	all := Generations()
	i := slices.IndexFunc(all, func(g Generation) bool { return g.Name == name })
	if i < 0 {
		return Furnishing{}, fmt.Errorf("there is no generation %q", name)
	}
	f := Furnishing{Generation: all[i], Services: itemsOf(existingServices(), i), Annotations: itemsOf(existingAnnotations(), i)}
	for _, x := range existingFiles() {
		item := Item{x.name, x.text, x.factPlace(i)}
		if item.Place == "" {
			f.Absent = append(f.Absent, item)
		} else {
			f.Files = append(f.Files, item)
		}
	}
	return f, nil
}

// itemsOf returns the facts that hold for a generation.
func itemsOf(facts []fact, generation int) []Item {
	var list []Item
	for _, x := range facts {
		if place := x.factPlace(generation); place != "" {
			list = append(list, Item{x.name, x.text, place})
		}
	}
	return list
}

// Command returns the command of a service, empty if it is not another one than that of this operator.
func (f Furnishing) Command(service string) string {
	for _, s := range f.Services {
		if s.Name == service {
			return s.Text
		}
	}
	return ""
}
