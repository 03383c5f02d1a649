// Package pty gives tests a terminal: a pseudo terminal of Linux, and what appears on it.
package pty
