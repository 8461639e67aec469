//go:build race

package controller

// underRace: the race detector takes five to ten times the memory (go.dev/doc/articles/race_detector).
const underRace = true
