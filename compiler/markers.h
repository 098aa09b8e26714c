/// Markers: where a module says "a stage starts here".
///
/// Used inside an ordinary `forward`. Outside of capture a marker costs a push and a pop on a
/// thread-local stack and changes nothing; during capture every operator is recorded together with
/// the stack it ran under.
///
///   auto h = sc::stage("encoder", encoder, x);        // a module, or anything callable with x
///   auto y = sc::stage("head", [&] { return head(h); });
///   x = sc::recompute(block, x);                      // inside of a stage
///
/// MK-1: a stage inside a stage is an error, and so is a stage name used twice in one forward; both
///      are noticed during capture. Regions nest freely.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "stagecraft/compiler/call.h"

namespace stagecraft {

/// One open scope: `tag` is "PP" for stages, the user's word for regions; `index` counts the tag's
/// scopes in order of entry.
struct Annotation {
  std::string tag;
  std::string name;
  int index = 0;

  friend bool operator==(const Annotation&, const Annotation&) = default;
};

inline constexpr std::string_view kStageTag = "PP";
inline constexpr std::string_view kRecomputeTag = "recompute";
inline constexpr std::string_view kLossTag = "loss";  ///< capture opens it around the loss

/// Opens a scope on this thread until it is destroyed.
/// Errors: CompilePartition (during capture) when MK-1 is broken.
class AnnotationScope {
 public:
  AnnotationScope(std::string_view tag, std::string_view name);
  ~AnnotationScope();
  AnnotationScope(const AnnotationScope&) = delete;
  AnnotationScope& operator=(const AnnotationScope&) = delete;
};

/// The scopes open on this thread, outermost first.
[[nodiscard]] const std::vector<Annotation>& open_annotations();

/// Counts scopes of one forward: made by capture, lives on its thread while the module runs.
class AnnotationCounter {
 public:
  AnnotationCounter();
  ~AnnotationCounter();
  AnnotationCounter(const AnnotationCounter&) = delete;
  AnnotationCounter& operator=(const AnnotationCounter&) = delete;

  /// Returns the annotation for a scope that opens now.
  Annotation enter(std::string_view tag, std::string_view name);

 private:
  std::vector<Annotation> seen_;
};

namespace internal {

/// Errors: UsageArgument.
[[noreturn]] void refuse_nothing_marked(std::string_view tag, std::string_view name);

template <class Given, class... Args>
decltype(auto) call_marked(std::string_view tag,
                           std::string_view name,
                           Given& given,
                           Args&&... args) {
  using Callee = CalleeOf<Given>;
  if constexpr (Callable<Callee, Args...>) {
    if (internal::holds_nothing(given)) {
      refuse_nothing_marked(tag, name);
    }
    return internal::call(internal::callee_of(given), std::forward<Args>(args)...);
  } else if constexpr (Callable<std::remove_const_t<Callee>, Args...>) {
    static_assert(kNever<Callee>,
                  "sc::stage: this module or callable is const and its forward or () is not: make "
                  "that const, or pass "
                  "one that is not const");
  } else {
    static_assert(kNever<Callee>,
                  "sc::stage takes a name, a module or callable, and its arguments: this one has "
                  "neither a forward nor "
                  "a () that takes these arguments");
  }
}

}  // namespace internal

/// Runs `callable` on `args` as the stage `name`; returns what it returns. A callable is a module,
/// a holder of one (AnyModule and Sequential too), a pointer to one, or anything with ().
/// Errors: UsageArgument for a null pointer or an empty holder; CompilePartition as
/// AnnotationScope.
template <class Callable, class... Args>
decltype(auto) stage(std::string_view name, Callable&& callable, Args&&... args) {
  const AnnotationScope scope(kStageTag, name);
  return internal::call_marked(kStageTag, name, callable, std::forward<Args>(args)...);
}

/// Runs `callable` under an annotation `tag` of its own (for example "EP"); stages are not
/// affected.
template <class Callable, class... Args>
decltype(auto) region(std::string_view tag, Callable&& callable, Args&&... args) {
  const AnnotationScope scope(tag, tag);
  return internal::call_marked(tag, tag, callable, std::forward<Args>(args)...);
}

/// Runs `callable` on `args` as a part that a program recomputes, as torch.utils.checkpoint does:
/// between a microbatch's forward and its backward it keeps what the part is given, no more, and
/// runs it again right before the backward. Regions of any number, in stages or around them; one
/// inside of another is part of that. Where Recompute (recompute.h) says otherwise, and outside of
/// programs, it is a plain call.
/// Errors: as stage().
template <class Callable, class... Args>
requires(!std::convertible_to<Callable, std::string_view>) decltype(auto)
    recompute(Callable&& callable, Args&&... args) {
  const AnnotationScope scope(kRecomputeTag, kRecomputeTag);
  return internal::call_marked(kRecomputeTag, kRecomputeTag, callable, std::forward<Args>(args)...);
}

/// The same under a name, by which Recompute can choose it.
template <class Callable, class... Args>
decltype(auto) recompute(std::string_view name, Callable&& callable, Args&&... args) {
  const AnnotationScope scope(kRecomputeTag, name);
  return internal::call_marked(kRecomputeTag, name, callable, std::forward<Args>(args)...);
}

}  // namespace stagecraft
