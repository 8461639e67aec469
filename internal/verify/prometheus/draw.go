package prometheus

import (
	"fmt"
	"image/color"
	"io"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Sizes of the picture. The grid of the dashboard has 24 columns.
const (
	column  = 44 * vg.Length(1)
	row     = 30 * vg.Length(1)
	margin  = 6 * vg.Length(1)
	columns = 24
	heading = 26 * vg.Length(1)
)

// palette are the colors of lines, distinct also for those who do not see all colors (Okabe and Ito).
func palette(i int) color.RGBA {
	colors := []color.RGBA{
		{0, 114, 178, 255}, {230, 159, 0, 255}, {0, 158, 115, 255}, {213, 94, 0, 255}, {86, 180, 233, 255}, {204, 121, 167, 255}, {140, 140, 60, 255}, {90, 90, 90, 255},
	}
	return colors[i%len(colors)]
}

// Draw writes the panels as one picture.
func Draw(to io.Writer, title string, panels []Evaluated) error {
	picture := vgsvg.NewWith(vgsvg.UseWH(columns*column, height(panels)))
	if err := paint(draw.New(picture), title, panels); err != nil {
		return err
	}
	_, err := picture.WriteTo(to)
	return err
}

func height(panels []Evaluated) vg.Length {
	rows := 0
	for _, p := range panels {
		rows = max(rows, p.Position.Y+p.Position.H)
	}
	return vg.Length(rows)*row + heading
}

func paint(canvas draw.Canvas, title string, panels []Evaluated) error {
	white(canvas)
	canvas.FillText(style(14, draw.XLeft), vg.Point{X: margin, Y: canvas.Max.Y - margin}, title)
	for _, p := range panels {
		area := draw.Canvas{Canvas: canvas, Rectangle: vg.Rectangle{
			Min: vg.Point{X: vg.Length(p.Position.X)*column + margin, Y: canvas.Max.Y - heading - vg.Length(p.Position.Y+p.Position.H)*row + margin},
			Max: vg.Point{X: vg.Length(p.Position.X+p.Position.W)*column - margin, Y: canvas.Max.Y - heading - vg.Length(p.Position.Y)*row - margin},
		}}
		frame(area)
		if p.Type == typeNumber {
			number(area, p)
			continue
		}
		if err := graph(area, p); err != nil {
			return fmt.Errorf("drawing the panel %q: %w", p.Title, err)
		}
	}
	return nil
}

func white(c draw.Canvas) {
	c.FillPolygon(color.White, []vg.Point{c.Min, {X: c.Max.X, Y: c.Min.Y}, c.Max, {X: c.Min.X, Y: c.Max.Y}})
}

func frame(c draw.Canvas) {
	c.StrokeLines(draw.LineStyle{Color: color.Gray{Y: 200}, Width: 1}, []vg.Point{c.Min, {X: c.Max.X, Y: c.Min.Y}, c.Max, {X: c.Min.X, Y: c.Max.Y}, c.Min})
}

func style(size vg.Length, align text.XAlignment) text.Style {
	return text.Style{
		Color: color.Gray{Y: 40}, Font: font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size), XAlign: align, YAlign: draw.YTop,
		Handler: plot.DefaultTextHandler,
	}
}

// number draws the last value of a panel.
func number(c draw.Canvas, p Evaluated) {
	middle := (c.Min.X + c.Max.X) / 2
	c.FillText(style(11, draw.XCenter), vg.Point{X: middle, Y: c.Max.Y - margin}, p.Title)
	points := p.Lines[0].Points
	c.FillText(style(30, draw.XCenter), vg.Point{X: middle, Y: c.Max.Y - 38}, show(points[len(points)-1].Value, p.unit()))
}

// graph draws lines, or areas that stand on each other.
func graph(c draw.Canvas, e Evaluated) error {
	p := plot.New()
	p.Title.Text, p.Title.TextStyle = e.Title, style(11, draw.XCenter)
	p.X.Tick.Marker = plot.TimeTicks{Ticker: hours{}, Format: "15:04", Time: func(t float64) time.Time { return time.Unix(int64(t), 0).UTC() }}
	p.Y.Tick.Marker = units{e.unit()}
	p.X.Tick.Label, p.Y.Tick.Label = style(8, draw.XCenter), style(8, draw.XRight)
	p.X.Tick.Label.YAlign, p.Y.Tick.Label.YAlign = draw.YTop, draw.YCenter
	p.Legend.TextStyle.Font, p.Legend.Padding, p.Legend.XOffs = style(8, draw.XLeft).Font, 2, margin
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	below := map[int64]float64{}
	highest := 0.0
	lines := e.Lines
	if e.Stack {
		lines = slices.DeleteFunc(slices.Clone(lines), Line.isZero)
	}
	for i, l := range lines {
		points, ground := make(plotter.XYs, len(l.Points)), make(plotter.XYs, len(l.Points))
		for k, at := range l.Points {
			x := at.At.Unix()
			points[k], ground[k] = plotter.XY{X: float64(x), Y: at.Value}, plotter.XY{X: float64(x), Y: below[x]}
			if e.Stack {
				points[k].Y += below[x]
				below[x] = points[k].Y
			}
			highest = max(highest, points[k].Y)
		}
		thumb, err := e.shape(points, ground, palette(i))
		if err != nil {
			return err
		}
		p.Add(thumb)
		p.Legend.Add(l.Name, thumb)
	}
	p.X.Min, p.X.Max = float64(e.Begin.Unix()), float64(e.End.Unix())
	p.Y.Min, p.Y.Max = 0, ceiling(highest, len(lines))
	p.Draw(draw.Crop(c, 4, -8, 2, -4))
	return nil
}

// drawn is what a plot and its legend take.
type drawn interface {
	plot.Plotter
	plot.Thumbnailer
}

// shape returns a line, or the area between a line and the one below it.
func (e Evaluated) shape(points, ground plotter.XYs, c color.RGBA) (drawn, error) {
	if !e.Stack {
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = c, 1.5
		return line, nil
	}
	for k := len(ground) - 1; k >= 0; k-- {
		points = append(points, ground[k])
	}
	area, err := plotter.NewPolygon(points)
	if err != nil {
		return nil, err
	}
	area.Color, area.LineStyle = c, draw.LineStyle{Color: c, Width: 0.5}
	return area, nil
}
