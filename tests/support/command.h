/// Runs a program as its user would, and returns its output and its end.
///
/// TP-1: no program outlives its test: a program that takes longer than its limit is killed, and so
/// is one whose RunningCommand is destroyed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace stagecraft::tests {

struct CommandResult {
  int exit_code = -1;  ///< 128 + signal when a signal ended it, as a shell says it
  bool timed_out = false;
  std::string out;
  std::string err;
};

inline constexpr std::chrono::seconds kCommandLimit{120};

/// Holds a started program. Thread: the test's own.
class RunningCommand {
 public:
  /// Starts `words` (the program first, found by PATH unless it has a slash) in `directory` ("" is
  /// this one). Throws std::runtime_error if it cannot be started.
  explicit RunningCommand(const std::vector<std::string>& words, const std::string& directory = "");
  ~RunningCommand();
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;

  /// Lets the program write only a few KiB ahead of its reader, so that it waits for its test.
  /// Call it at once.
  void keep_pace() const;

  /// Reads until standard output holds `text`; returns false if the program ended or the limit
  /// passed before that.
  bool wait_for_output(const std::string& text, std::chrono::seconds limit = kCommandLimit);
  /// Does the same for standard error.
  bool wait_for_error(const std::string& text, std::chrono::seconds limit = kCommandLimit);
  /// Reads until standard output has another line, and returns it without its end; nothing if the
  /// program ended or the limit passed before that.
  std::optional<std::string> next_line(std::chrono::seconds limit = kCommandLimit);
  /// Returns what was read of standard error.
  [[nodiscard]] const std::string& error() const { return result_.err; }
  void send_signal(int signal) const;
  /// Returns the processes that the program has started and that are still there.
  [[nodiscard]] std::vector<pid_t> children() const;
  /// Reads until the program ends.
  CommandResult wait(std::chrono::seconds limit = kCommandLimit);

 private:
  bool wait_for(const std::string& found, const std::string& text, std::chrono::seconds limit);
  bool read_some(std::chrono::steady_clock::time_point deadline);

  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  CommandResult result_;
  std::size_t line_ = 0;  ///< where the next one begins
};

[[nodiscard]] CommandResult run_command(const std::vector<std::string>& words,
                                        const std::string& directory = "");

/// Holds a fresh folder that is removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Writes `content` to a file of the folder and returns its path.
  std::string write(const std::string& name, const std::string& content) const;

 private:
  std::string path_;
};

[[nodiscard]] std::string read_text_file(const std::string& path);

}  // namespace stagecraft::tests
