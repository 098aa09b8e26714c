#include "stagecraft/compiler/capture/refusals.h"

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/capture/boxed_call.h"
#include "stagecraft/compiler/capture/operator_traits.h"
#include "stagecraft/compiler/module/markers.h"

namespace stagecraft {

std::string under_marker() {
  bool loss = false;
  for (const Annotation& a : open_annotations()) {
    if (a.tag == kStageTag) {
      return fmt::format(" (in stage \"{}\")", a.name);
    }
    loss = loss || a.tag == kLossTag;
  }
  return loss ? " (in the loss)" : " (outside all stages)";
}

void check_replayable(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments) {
  if (reads_values(op)) {
    throw Error(
        Errc::CompileCapture,
        fmt::format("{} reads a value that depends on an input or parameter{}; a decision "
                    "by it would be frozen into the captured graph: keep the decision in "
                    "tensors (torch::where), or make this part a native stage (sc::native_stage)",
                    full_name(op),
                    under_marker()));
  }
  if (shape_depends_on_values(op, arguments)) {
    throw Error(Errc::CompileCapture,
                fmt::format("the shape of the result of {} depends on the values of an input or "
                            "parameter{}; captured shapes are fixed: use an operator with a fixed "
                            "shape (masking with torch::where instead of selecting)",
                            full_name(op),
                            under_marker()));
  }
}

void refuse_equal(const c10::OperatorHandle& op) {
  throw Error(
      Errc::CompileCapture,
      fmt::format(
          "{} finds two different tensors equal{}; a decision by this answer depends "
          "on their values and would be frozen into the captured graph: keep the "
          "decision in tensors (torch::where), or make this part a native stage (sc::native_stage)",
          full_name(op),
          under_marker()));
}

void refuse_hidden_read(std::string_view running, const c10::OperatorHandle& op) {
  throw Error(
      Errc::CompileCapture,
      fmt::format(
          "{} reads, through {}, a value that depends on an input or parameter{}; a "
          "decision by it would be frozen into the captured graph: keep the "
          "decision in tensors (torch::where), or make this part a native stage (sc::native_stage)",
          running,
          full_name(op),
          under_marker()));
}

void refuse_hidden_draw(std::string_view running, const c10::OperatorHandle& op) {
  throw Error(Errc::CompileCapture,
              fmt::format("{} draws random numbers inside{} (through {}), which another cut cannot "
                          "repeat: set its dropout to 0 and apply dropout as an operator of its "
                          "own",
                          running,
                          under_marker(),
                          full_name(op)));
}

void refuse_parameter_write(const c10::OperatorHandle& op,
                            std::string_view parameter,
                            bool through_another) {
  throw Error(Errc::CompileCapture,
              fmt::format("{} writes the parameter {}{} inside forward{}; only the optimizer may "
                          "change parameters: use a buffer, write a clone() of it, or change it "
                          "outside of forward",
                          full_name(op),
                          parameter,
                          through_another ? " (through a view, detach() or data() of it)" : "",
                          under_marker()));
}

}  // namespace stagecraft
