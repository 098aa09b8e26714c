/// FaultList: what is outside the grammar of a file, told together so that one look at the file
/// mends it.
///
/// A reader notes what it does not understand, goes on behind it, and asks at the end whether it
/// may hand over what it has read. The first 20 faults are listed, further ones counted; what to do
/// ("...; a cell is ...") is said with the first fault that it mends. A value.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "stagecraft/base/error.h"

namespace stagecraft::formats {

class FaultList {
 public:
  /// Takes "line 2, column 7: '1X0' is no cell; a cell is ...".
  /// Errors: ScheduleParse, as refuse_if_any, once there are too_many().
  void note(std::string fault);

  /// Reads something; what it throws is a fault, behind which the caller goes on.
  template <class Read>
  void attempt(Read&& read) {
    try {
      read();
    } catch (const Error& error) {
      note(error.message());
    }
  }

  [[nodiscard]] std::size_t count() const { return count_; }
  /// Whether a further fault is counted only: its text may be empty.
  [[nodiscard]] bool full() const { return count_ >= kMostListed; }

  /// Whether the file is something else, and reading on would only take time.
  [[nodiscard]] bool too_many() const { return count_ >= kMostCounted; }

  /// Errors: ScheduleParse with all faults, where there is any.
  void refuse_if_any() const;

 private:
  static constexpr std::size_t kMostListed = 20;
  static constexpr std::size_t kMostCounted = 1000;

  std::size_t count_ = 0;
  std::vector<std::string> faults_;
  std::set<std::string> advised_;  ///< what to do, as faults have said it
};

}  // namespace stagecraft::formats
