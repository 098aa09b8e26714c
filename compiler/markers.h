/// Markers: where a module says "a stage starts here".
///
/// Used inside an ordinary `forward`. Outside of capture a marker costs two pushes on a thread-local stack and
/// changes nothing; during capture every operator is recorded together with the stack it ran under.
///
///   auto h = sc::stage("encoder", encoder, x);        // a module, or anything callable with x
///   auto y = sc::stage("head", [&] { return head(h); });
///
/// M-1: a stage inside a stage is an error, and so is a stage name used twice in one forward; both are
///      noticed during capture. Regions nest freely.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stagecraft {

/// One open scope: `tag` is "PP" for stages, the user's word for regions; `index` counts the tag's scopes in order of entry.
struct Annotation {
  std::string tag;
  std::string name;
  int index = 0;

  friend bool operator==(const Annotation&, const Annotation&) = default;
};

inline constexpr std::string_view kStageTag = "PP";
inline constexpr std::string_view kLossTag = "loss";  ///< capture opens it around the loss

/// Opens a scope on this thread until it is destroyed.
/// Errors: CompilePartition (during capture) when M-1 is broken.
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

namespace markers {

template <class Callable, class... Args>
decltype(auto) call(Callable&& callable, Args&&... args) {
  if constexpr (requires { callable->forward(std::forward<Args>(args)...); }) {
    return callable->forward(std::forward<Args>(args)...);
  } else if constexpr (requires { callable.forward(std::forward<Args>(args)...); }) {
    return callable.forward(std::forward<Args>(args)...);
  } else {
    return callable(std::forward<Args>(args)...);
  }
}

}  // namespace markers

/// Runs `callable` (a module or any callable) on `args` as the stage `name`; returns what it returns.
template <class Callable, class... Args>
decltype(auto) stage(std::string_view name, Callable&& callable, Args&&... args) {
  const AnnotationScope scope(kStageTag, name);
  return markers::call(callable, std::forward<Args>(args)...);
}

/// Runs `callable` under an annotation `tag` of its own (for example "EP"); stages are not affected.
template <class Callable, class... Args>
decltype(auto) region(std::string_view tag, Callable&& callable, Args&&... args) {
  const AnnotationScope scope(tag, tag);
  return markers::call(callable, std::forward<Args>(args)...);
}

}  // namespace stagecraft
