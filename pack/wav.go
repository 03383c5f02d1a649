package pack

import (
	"encoding/binary"
	"errors"
)

// wavSeconds is how long a RIFF WAVE file of uncompressed sound lasts, by its header and by how much sound there is.
func wavSeconds(data string) (float64, error) {
	if len(data) < 12 || data[:4] != "RIFF" || data[8:12] != "WAVE" {
		return 0, errors.New("it is no WAVE file")
	}
	u16 := func(s string) uint64 { return uint64(binary.LittleEndian.Uint16([]byte(s[:2]))) }
	u32 := func(s string) uint64 { return uint64(binary.LittleEndian.Uint32([]byte(s[:4]))) }
	rate := uint64(0) // bytes a second
	for rest := data[12:]; len(rest) >= 8; {
		id, size := rest[:4], u32(rest[4:])
		body := rest[8:]
		switch {
		case id == "data" && rate == 0:
			return 0, errors.New("its sound stands before its format")
		case id == "data":
			if size == 0 || size > uint64(len(body)) { // a program that writes as it records doesn't know, or the file was cut
				size = uint64(len(body))
			}
			return float64(size) / float64(rate), nil
		case size > uint64(len(body)):
			return 0, errors.New("it is cut off")
		case id == "fmt ":
			const pcm, float, extensible = 1, 3, 0xFFFE
			if size < 16 {
				return 0, errors.New("its format is cut off")
			}
			kind, samples, frame := u16(body), u32(body[4:]), u16(body[12:])
			if kind == extensible && size >= 26 {
				kind = u16(body[24:])
			}
			if kind != pcm && kind != float {
				return 0, errors.New("its sound is compressed")
			}
			if rate = samples * frame; rate == 0 || rate != u32(body[8:]) || frame*8 != u16(body[2:])*((u16(body[14:])+7)/8*8) {
				return 0, errors.New("its format contradicts itself")
			}
		}
		size += size % 2 // chunks begin at even places
		rest = body[min(size, uint64(len(body))):]
	}
	return 0, errors.New("it has no sound")
}
