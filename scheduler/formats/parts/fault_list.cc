#include "stagecraft/scheduler/formats/parts/fault_list.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"

namespace stagecraft::formats {

void FaultList::note(std::string fault) {
  if (!full()) {
    const std::size_t advice = fault.rfind("; ");
    if (advice != std::string::npos && !advised_.insert(fault.substr(advice)).second) {
      fault.resize(advice);
    }
    faults_.push_back(std::move(fault));
  }
  ++count_;
  if (too_many()) {
    refuse_if_any();
  }
}

void FaultList::refuse_if_any() const {
  if (count_ == 0) {
    return;
  }
  if (count_ == 1) {
    throw Error(Errc::ScheduleParse, faults_.front());
  }
  std::string text = fmt::format(
      "{}{} faults\n{}", too_many() ? "at least " : "", count_, fmt::join(faults_, "\n"));
  if (count_ > faults_.size()) {
    text += fmt::format("\nand {} more", count_ - faults_.size());
  }
  throw Error(Errc::ScheduleParse, std::move(text));
}

}  // namespace stagecraft::formats
