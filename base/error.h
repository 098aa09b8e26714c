/// Error is the one exception type of Stagecraft, and the value that crosses threads and messages.
///
/// A layer throws it. The border of a thread or an actor catches it and sends it as a value; the
/// reader's `get()` throws it again. Each layer on the way up adds the context that it knows
/// (`with`). The message says what was expected, what was found and what to do.
///
/// Readers differ: a program sets fields and calls functions; a user of a command has options and
/// files. So an error names its option by a key, and keeps the advice to a program apart from the
/// message. in_words() replaces both for another reader.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stagecraft/base/ids.h"

namespace stagecraft {

/// The code says what happened. Its family decides which layer handles it.
enum class Errc : std::uint8_t {
  // Usage: the caller's arguments
  UsageArgument,
  UsageFile,
  // Schedule: the array breaks a rule, or its text cannot be read
  ScheduleParse,
  ScheduleInvalid,
  ScheduleParameter,
  // Compile: the module cannot be captured or cut
  CompileCapture,
  CompilePartition,
  CompileShape,
  // Plan: a lowered plan breaks a rule, or no plan fits the devices
  PlanInvalid,
  PlanInfeasible,
  // Transport
  TransportClosed,
  TransportRefused,
  // Wire: a received message cannot be read
  WireFormat,
  // Device
  DeviceOutOfMemory,
  DeviceFailed,
  // Worker
  WorkerFailed,
  WorkerAborted,
  WorkerPhase,
  WorkerLost,
  NonFinite,
  // Cluster
  ClusterTimeout,
  ClusterClosed,
  ClusterMember,
  // Checkpoint
  CheckpointFormat,
  CheckpointMismatch,
  // Future
  Cancelled,
  // Internal: our bug
  Internal,
};

enum class ErrorFamily : std::uint8_t {
  Usage,
  Schedule,
  Compile,
  Plan,
  Transport,
  Device,
  Worker,
  Cluster,
  Internal,
};

[[nodiscard]] ErrorFamily family(Errc code);
[[nodiscard]] std::string_view to_string(Errc code);

/// Says where the error happened, as far as the layers on the way up knew.
struct ErrorContext {
  std::optional<Rank> rank;
  std::optional<StageId> stage;
  std::optional<Microbatch> microbatch;
  std::optional<Step> step;
  std::string task;  ///< "1B3", an instruction, or empty
  std::string peer;  ///< the other end of a transfer, or empty

  friend bool operator==(const ErrorContext&, const ErrorContext&) = default;
};

/// Stands in the text of an error for the name of its option: "set a longer {option}".
inline constexpr std::string_view kOption = "{option}";

class Error : public std::exception {
 public:
  /// `text`: the message. It contains kOption if the error is about an option.
  Error(Errc code, std::string text);

  [[nodiscard]] Errc code() const { return code_; }
  /// Returns the text with the option's name in the place of kOption.
  [[nodiscard]] const std::string& message() const { return message_; }
  /// Returns the text as the constructor got it, to make another error of it.
  [[nodiscard]] const std::string& text() const { return text_; }
  /// Returns the option that the error is about, as a program sets it ("memory_limit"), or "".
  [[nodiscard]] const std::string& option() const { return option_; }
  /// Returns the advice to a program on how to continue ("trainer.load(file)"), or "".
  [[nodiscard]] const std::string& advice() const { return advice_; }
  [[nodiscard]] const ErrorContext& context() const { return context_; }
  [[nodiscard]] const Error* cause() const { return cause_.get(); }

  Error& about(std::string option);
  Error& advise(std::string advice);
  /// Fills the fields of the context that are still empty: the innermost layer knows best.
  Error& with(const ErrorContext& more);
  /// Stores the error that led to this one.
  Error& because(const Error& cause);

  /// Returns one line: the message, then the advice, the context and the cause.
  [[nodiscard]] const char* what() const noexcept override { return what_.c_str(); }

  friend bool operator==(const Error& a, const Error& b) { return a.code_ == b.code_; }

 private:
  void render();

  Errc code_;
  std::string text_;
  std::string message_;
  std::string option_;
  std::string advice_;
  ErrorContext context_;
  std::shared_ptr<const Error> cause_;
  std::string what_;
};

/// ErrorWords holds a reader's words for the options and functions of a program.
struct ErrorWords {
  std::vector<std::pair<std::string, std::string>> options;  ///< a program's name and the reader's
  std::string advice;  ///< replaces each advice; empty: no advice
};

/// Returns the error and its causes in other words.
[[nodiscard]] Error in_words(const Error& error, const ErrorWords& words);

}  // namespace stagecraft
