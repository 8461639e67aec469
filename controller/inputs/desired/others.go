package desired

import (
	"strings"

	"wmco/controller/gather"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

// NamesOfOthers returns the names and addresses of all other hosts than one: those that the cloud or the resolver gives
// them, and those in their records, also of hosts that are removed. Addresses in a record count where nothing
// newer is known.
func (h *Hosts) NamesOfOthers(than render.Node) []string {
	own := gather.HostID(than)
	var list []string
	current := map[record.ID]bool{}
	for _, n := range h.All {
		if id := gather.HostID(n); id != own && n.Backing != render.BackingNode {
			list = append(append(list, n.Address), n.Addresses...)
			current[id] = len(n.Addresses) > 0
		}
	}
	for _, id := range h.Records.IDs() {
		if id == own {
			continue
		}
		r, _ := h.Records.RecordByID(id)
		list = append(list, r.Node, r.MachineName, r.Entry)
		if !current[id] {
			list = append(append(list, strings.Fields(r.Resolved)...), r.Address)
		}
	}
	return list
}
