/// FaultList collects the faults in the grammar of a file and reports them together, so that a user
/// can repair them at once.
///
/// A reader notes each fault, continues, and asks at the end whether it may return its result. The
/// error lists the first 20 faults and counts further ones. Advice ("...; a cell is ...") appears
/// with the first fault that it repairs. A value.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "stagecraft/base/error.h"

namespace stagecraft::formats {

class FaultList {
 public:
  /// Notes a fault: "line 2, column 7: '1X0' is not a cell; a cell is ...".
  /// Errors: ScheduleParse, as refuse_if_any, once there are too_many().
  void note(std::string fault);

  /// Calls `read`. An Error that it throws becomes a fault, and the caller continues.
  template <class Read>
  void attempt(Read&& read) {
    try {
      read();
    } catch (const Error& error) {
      note(error.message());
    }
  }

  [[nodiscard]] std::size_t count() const { return count_; }
  /// Returns whether a further fault is only counted; its text may then be empty.
  [[nodiscard]] bool full() const { return count_ >= kMostListed; }

  /// Returns whether the file is probably of another kind, so that reading on would waste time.
  [[nodiscard]] bool too_many() const { return count_ >= kMostCounted; }

  /// Errors: ScheduleParse with all faults, if there is any.
  void refuse_if_any() const;

 private:
  static constexpr std::size_t kMostListed = 20;
  static constexpr std::size_t kMostCounted = 1000;

  std::size_t count_ = 0;
  std::vector<std::string> faults_;
  std::set<std::string> advised_;  ///< advice that faults have already given
};

}  // namespace stagecraft::formats
