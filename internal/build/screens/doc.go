// Package screens draws the terminals of docs/screens.
//
//	golden/clusters --Fleet--> files of a cluster with Windows nodes --wmco--> text --Draw--> SVG
//
// The commands run for real, on files as a must-gather has them, and on an API server that serves such files. The same
// sources give the same bytes.
package screens
