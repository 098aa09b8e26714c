/// Markers let a module say "a stage starts here".
///
/// They are used inside an ordinary `forward`. Outside of capture a marker costs a push and a pop
/// on a thread-local stack and changes nothing. During capture every operator is recorded together
/// with its stage.
///
///   auto h = sc::stage("encoder", encoder, x);        // a module, or anything callable with x
///   auto y = sc::stage("head", [&] { return head(h); });
///   x = sc::recompute(block, x);                      // inside of a stage
///
/// MK-1: a stage inside a stage is an error, and so is a stage name used twice in one forward.
///       Capture reports both. Regions nest freely.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "stagecraft/compiler/module/call.h"
#include "stagecraft/scheduler/strategy/filter.h"

namespace stagecraft {

/// Annotation is one open scope. `tag` is "PP" (kStageTag) for stages and the user's word for
/// regions; `index` counts the tag's scopes in order of entry.
struct Annotation {
  std::string tag;
  std::string name;
  int index = 0;

  friend bool operator==(const Annotation&, const Annotation&) = default;
};

inline constexpr std::string_view kRecomputeTag = "recompute";
inline constexpr std::string_view kLossTag = "loss";  ///< capture opens it around the loss

/// AnnotationScope opens a scope on this thread until it is destroyed.
/// Errors: CompilePartition (during capture) if MK-1 is broken.
class AnnotationScope {
 public:
  AnnotationScope(std::string_view tag, std::string_view name);
  ~AnnotationScope();
  AnnotationScope(const AnnotationScope&) = delete;
  AnnotationScope& operator=(const AnnotationScope&) = delete;
};

/// Returns the scopes that are open on this thread, outermost first.
[[nodiscard]] const std::vector<Annotation>& open_annotations();

/// AnnotationCounter counts the scopes of one forward. Capture makes it; it lives on capture's
/// thread while the module runs.
class AnnotationCounter {
 public:
  AnnotationCounter();
  ~AnnotationCounter();
  AnnotationCounter(const AnnotationCounter&) = delete;
  AnnotationCounter& operator=(const AnnotationCounter&) = delete;

  /// Returns whether this thread has one.
  [[nodiscard]] static bool is_counting();

  /// Returns the annotation for a scope that opens now.
  Annotation enter(std::string_view tag, std::string_view name);

 private:
  std::vector<Annotation> seen_;
};

namespace internal {

/// Throws UsageArgument.
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
                  "that const, or pass one that is not const");
  } else {
    static_assert(kNever<Callee>,
                  "sc::stage takes a name, a module or callable, and its arguments: this one has "
                  "neither a forward nor a () that takes these arguments");
  }
}

}  // namespace internal

/// Runs `callable` on `args` as the stage `name` and returns its result. A callable is a module, a
/// holder of one (AnyModule and Sequential too), a pointer to one, or anything with ().
/// Errors: UsageArgument for a null pointer or an empty holder; those of AnnotationScope.
template <class Callable, class... Args>
decltype(auto) stage(std::string_view name, Callable&& callable, Args&&... args) {
  const AnnotationScope scope(kStageTag, name);
  return internal::call_marked(kStageTag, name, callable, std::forward<Args>(args)...);
}

/// Runs `callable` under its own annotation `tag` (for example "EP"). Stages are not affected.
template <class Callable, class... Args>
decltype(auto) region(std::string_view tag, Callable&& callable, Args&&... args) {
  const AnnotationScope scope(tag, tag);
  return internal::call_marked(tag, tag, callable, std::forward<Args>(args)...);
}

/// Runs `callable` on `args` as a part that a program recomputes, like torch.utils.checkpoint.
/// Between a microbatch's forward and its backward the part keeps only its arguments; right before
/// the backward it runs again. Any number of regions may be in stages or around them; a region
/// inside another one is part of that one. If Recompute (recompute.h) says otherwise, and outside
/// of programs, this is a plain call.
/// Errors: those of stage().
template <class Callable, class... Args>
requires(!std::convertible_to<Callable, std::string_view>) decltype(auto)
    recompute(Callable&& callable, Args&&... args) {
  const AnnotationScope scope(kRecomputeTag, kRecomputeTag);
  return internal::call_marked(kRecomputeTag, kRecomputeTag, callable, std::forward<Args>(args)...);
}

/// Does the same under a name, by which Recompute can select the region.
template <class Callable, class... Args>
decltype(auto) recompute(std::string_view name, Callable&& callable, Args&&... args) {
  const AnnotationScope scope(kRecomputeTag, name);
  return internal::call_marked(kRecomputeTag, name, callable, std::forward<Args>(args)...);
}

}  // namespace stagecraft
