package prometheus

import (
	"math"
	"strconv"
	"time"

	"gonum.org/v1/plot"
)

// show writes a value with its unit, as the console does.
func show(v float64, unit string) string {
	switch unit {
	case "percentunit":
		return short(v*100) + "%"
	case "s":
		return strip(time.Duration(v * float64(time.Second)).Round(time.Second))
	case "bytes":
		return scaled(v, 1024, []string{" B", " KiB", " MiB", " GiB"})
	case "Bps":
		return scaled(v, 1000, []string{" B/s", " kB/s", " MB/s", " GB/s"})
	case "ops":
		return short(v) + "/s"
	}
	return short(v)
}

func short(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }

// strip writes a duration without the seconds and minutes that are zero.
func strip(d time.Duration) string {
	if d >= time.Hour && d%time.Hour == 0 {
		return strconv.Itoa(int(d.Hours())) + "h"
	}
	if d >= time.Minute && d%time.Minute == 0 {
		return strconv.Itoa(int(d.Minutes())) + "m"
	}
	return d.String()
}

func scaled(v, base float64, names []string) string {
	i := 0
	for v >= base && i < len(names)-1 {
		v, i = v/base, i+1
	}
	return short(v) + names[i]
}

// ceiling leaves space for the legend above the lines.
func ceiling(highest float64, lines int) float64 {
	if highest == 0 {
		highest = 1
	}
	return highest * (1.1 + 0.1*float64(lines))
}

// units marks values that are round in their unit.
type units struct{ unit string }

// Ticks implements plot.Ticker.
func (u units) Ticks(least, most float64) []plot.Tick {
	apart := u.apart(most - least)
	var ticks []plot.Tick
	for i := math.Ceil(least / apart); i*apart <= most; i++ {
		ticks = append(ticks, plot.Tick{Value: i * apart, Label: show(i*apart, u.unit)})
	}
	return ticks
}

// apart returns the least round distance with which there are six marks at most.
func (u units) apart(span float64) float64 {
	round, base, scale := []float64{1, 2, 5}, 10.0, 1.0
	switch u.unit {
	case "s":
		for _, seconds := range []float64{1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800} {
			if span/seconds <= 5 {
				return seconds
			}
		}
		round, base, scale = []float64{1, 2, 4, 8}, 24, 3600
	case "bytes":
		round, base = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}, 1024
	case "none":
		scale = 1 // whole numbers alone
	default:
		scale = 1e-6
	}
	for ; ; scale *= base {
		for _, r := range round {
			if span/(r*scale) <= 6 {
				return r * scale
			}
		}
	}
}

// hours marks every half hour.
type hours struct{}

// Ticks implements plot.Ticker. TimeTicks writes the labels.
func (hours) Ticks(least, most float64) []plot.Tick {
	const apart = 1800
	var ticks []plot.Tick
	for t := math.Ceil(least/apart) * apart; t <= most; t += apart {
		ticks = append(ticks, plot.Tick{Value: t, Label: "x"})
	}
	return ticks
}
