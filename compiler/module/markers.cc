#include "stagecraft/compiler/module/markers.h"

#include <algorithm>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): the open scopes belong to the
// thread that runs forward.
thread_local std::vector<Annotation> open_scopes;
thread_local AnnotationCounter* counter = nullptr;
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

}  // namespace

AnnotationScope::AnnotationScope(std::string_view tag, std::string_view name) {
  open_scopes.push_back(counter != nullptr ? counter->enter(tag, name)
                                           : Annotation{std::string(tag), std::string(name), 0});
}

AnnotationScope::~AnnotationScope() {
  open_scopes.pop_back();
}

const std::vector<Annotation>& open_annotations() {
  return open_scopes;
}

AnnotationCounter::AnnotationCounter() {
  counter = this;
}

AnnotationCounter::~AnnotationCounter() {
  counter = nullptr;
}

bool AnnotationCounter::is_counting() {
  return counter != nullptr;
}

Annotation AnnotationCounter::enter(std::string_view tag, std::string_view name) {
  const auto same_tag = [&](const Annotation& a) { return a.tag == tag; };
  if (tag == kStageTag) {
    const auto outer = std::find_if(open_scopes.begin(), open_scopes.end(), same_tag);
    if (outer != open_scopes.end()) {
      throw Error(
          Errc::CompilePartition,
          fmt::format(
              "stage \"{}\" is opened inside stage \"{}\"; stages cannot nest: close the outer one "
              "first, or mark the inner part with sc::region",
              name,
              outer->name));
    }
    const bool used = std::any_of(seen_.begin(), seen_.end(), [&](const Annotation& a) {
      return same_tag(a) && a.name == name;
    });
    if (used) {
      throw Error(Errc::CompilePartition,
                  fmt::format("the stage name \"{}\" is used twice in one forward; a stage is "
                              "entered once: give the second marker a name of its own",
                              name));
    }
  }
  const auto index = std::count_if(seen_.begin(), seen_.end(), same_tag);
  seen_.push_back({std::string(tag), std::string(name), static_cast<int>(index)});
  return seen_.back();
}

namespace internal {

void refuse_nothing_marked(std::string_view tag, std::string_view name) {
  throw Error(Errc::UsageArgument,
              fmt::format("{} \"{}\" was given a null pointer, an empty module holder or an empty "
                          "function; construct the module first (torch::nn::Linear(nullptr) holds "
                          "none), and use none that was moved from",
                          tag == kStageTag ? "stage" : "region",
                          name));
}

}  // namespace internal

}  // namespace stagecraft
