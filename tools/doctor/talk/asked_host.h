/// AskedHost is one host that the doctor asks, by a helper that ssh starts there (answer.h).
///
/// A thread of the child process takes the answers; the doctor's own thread does the rest.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "stagecraft/actors/launch/network/hosts.h"
#include "stagecraft/actors/launch/ways/child_process.h"
#include "stagecraft/tools/doctor/talk/talk.h"

namespace stagecraft::tools {

using WallTime = std::chrono::system_clock::time_point;

struct HostAnswer {
  Json content;  ///< null: no answer came
  WallTime arrived;
};

class AskedHost {
 public:
  /// Starts ssh. `program`: the path of stagecraft there.
  AskedHost(const std::vector<std::string>& ssh, const Host& host, const std::string& program);

  void ask(const std::string& line);
  /// Waits for the next answer. Returns one without content if the deadline passes or ssh ends.
  [[nodiscard]] HostAnswer answer(std::chrono::steady_clock::time_point deadline);
  /// Returns the reason why no answer came, as a clause about the host.
  [[nodiscard]] std::string silence() const;

 private:
  /// Inbox holds the output of the helper, shared with the thread that reads it.
  struct Inbox {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<HostAnswer> answers;
    std::string said;  ///< other lines: of ssh, the shell or the program
    bool ended = false;
  };
  static void take(Inbox& inbox, std::string_view line);

  const std::string name_;
  const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  std::unique_ptr<ChildProcess> child_;
};

}  // namespace stagecraft::tools
