/// A frame ring is a queue of small messages from one process to another, in memory that both share
/// (MemoryFile). RingWriter is the sender's side, RingReader the receiver's; neither waits.
///
///   bytes written | bytes read | the reader sleeps | messages, in a circle
///
/// RG-1: a message is there whole, or not at all: one without room is not written.
/// RG-2: a reader copies a message before anybody looks at it, and refuses positions and sizes that
///       no writer would have written.
/// RG-3: what is written before a reader falls asleep keeps it awake, and the first message after
///       that finds it asleep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stagecraft {

/// A message has two parts: a frame's header and its bytes.
struct RingMessage {
  std::string_view header, bytes;
};

struct RingState;

/// One thread at a time uses it.
class RingWriter {
 public:
  /// `memory`: MemoryFile::ring(), zeroed, of which this is the only writer.
  explicit RingWriter(std::span<std::byte> memory);

  /// Returns false if there is no room.
  [[nodiscard]] bool write(const RingMessage& message);
  /// Returns whether the reader sleeps and must be woken. Called after each write().
  [[nodiscard]] bool finds_sleeper();

 private:
  void copy_in(std::uint64_t at, std::string_view bytes);

  RingState& state_;
  const std::span<std::byte> circle_;
  std::uint64_t written_ = 0;
};

/// One thread owns it.
class RingReader {
 public:
  /// `memory`: MemoryFile::ring(), of which this is the only reader.
  explicit RingReader(std::span<std::byte> memory);
  RingReader(const RingReader&) = delete;
  RingReader& operator=(const RingReader&) = delete;
  /// Leaves the ring asleep, so that the writer rings, and finds nobody.
  ~RingReader();

  /// Returns the next message, valid until the next call; nothing if there is none. It stays the
  /// next one until pop(). Errors: TransportRefused if RG-2 refuses it.
  [[nodiscard]] std::optional<RingMessage> next();
  /// Removes the message that next() returned.
  void pop();

  /// Returns false if something was written after the last next(). Else the writer wakes the reader
  /// from now on until wake_up().
  [[nodiscard]] bool fall_asleep();
  void wake_up();

 private:
  void copy_out(std::uint64_t at, std::span<char> bytes) const;

  RingState& state_;
  const std::span<std::byte> circle_;
  std::uint64_t read_ = 0;
  std::uint64_t seen_ = 0;    ///< bytes written at the last next()
  std::uint64_t length_ = 0;  ///< of the message that next() returned
  std::string copy_;          ///< of that message
};

}  // namespace stagecraft
