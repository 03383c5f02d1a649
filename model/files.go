package model

import (
	"context"

	"github.com/pawl-dev/pawl/message"
)

// Uploader is implemented by models whose provider keeps files: large ones are sent once then, and named by their ID in every request after that. Find it
// with [As]. Safe for concurrent use.
type Uploader interface {
	// Upload gives f's Data to the provider, and f back with the Provider and ID that it is sent by from now on. Its Data stays, so
	// that another provider can be asked, too; without it the messages that it is in are smaller. How long the provider keeps it is the
	// provider's matter: an ID that it knows no more is refused with errdefs.NotFound or errdefs.Validation by the call that uses it.
	// errdefs.Validation for a file without Data.
	Upload(ctx context.Context, f message.File) (message.File, error)
	// Discard has the provider delete a file that was uploaded. errdefs.NotFound if it has none; errdefs.Validation if another one keeps it.
	Discard(ctx context.Context, f message.File) error
}
