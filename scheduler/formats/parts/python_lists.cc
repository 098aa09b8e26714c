#include "stagecraft/scheduler/formats/parts/python_lists.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace stagecraft::formats {
namespace {

bool in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.';
}

std::string_view last_part(std::string_view dotted) {
  return dotted.substr(dotted.rfind('.') + 1);  // npos + 1 is 0
}

}  // namespace

std::optional<std::string_view> PythonCall::argument(std::string_view wanted) const {
  const auto found =
      std::ranges::find(arguments, wanted, [](const auto& argument) { return argument.first; });
  return found == arguments.end() ? std::nullopt : std::optional(found->second);
}

PythonLists::PythonLists(std::string_view text) : text_(text), lines_(text) {
  require_size(text);
  expect('[', "at the beginning of the rows");
}

void PythonLists::refuse(std::size_t offset, std::string_view what) const {
  fail(lines_.location(offset), what);
}

int PythonLists::number(const PythonCall& call, std::string_view name, int end) const {
  const auto text = call.argument(name);
  const auto value = text ? whole_number(*text) : std::nullopt;
  if (!value || *value >= end) {
    refuse(call.offset,
           fmt::format("a {} needs {}= with a number below {}, found {}",
                       call.name,
                       name,
                       end,
                       text ? quoted(*text) : "none"));
  }
  return *value;
}

/// Returns the next character that is no blank; '\0' at the end.
char PythonLists::peek() {
  at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool PythonLists::take(char c) {
  const bool there = peek() == c && at_ < text_.size();
  at_ += there ? 1 : 0;
  return there;
}

void PythonLists::expect(char c, std::string_view where) {
  if (!take(c)) {
    refuse(
        at_,
        at_ == text_.size()
            ? fmt::format("the list ends too early: expected '{}' {}", c, where)
            : fmt::format("expected '{}' {}, found {}", c, where, quoted(text_.substr(at_, 20))));
  }
}

/// Returns whether another element follows in a list that ends with `close`.
bool PythonLists::next_element(bool first, char close) {
  if (take(close)) {
    return false;
  }
  if (!first) {
    expect(',', "between two elements");
    return !take(close);  // a trailing comma is allowed
  }
  return true;
}

bool PythonLists::next_row() {
  if (!next_element(!std::exchange(any_row_, true), ']')) {
    if (peek() != '\0') {
      refuse(at_, fmt::format("{} follows the list; leave it out", quoted(text_.substr(at_, 20))));
    }
    return false;
  }
  expect('[', "at the beginning of a row");
  any_item_ = false;
  return true;
}

std::string_view PythonLists::name(std::string_view what) {
  (void)peek();
  const std::size_t begin = at_;
  while (at_ < text_.size() && in_name(text_[at_])) {
    ++at_;
  }
  if (begin == at_) {
    refuse(at_, fmt::format("expected {}, found {}", what, quoted(text_.substr(at_, 20))));
  }
  return text_.substr(begin, at_ - begin);
}

/// Reads a number, a name, a quoted text, or an enumerator as Python prints most of them:
/// <CommDirection.NEXT: 0>.
std::string_view PythonLists::value() {
  const char open = peek();
  if (open != '\'' && open != '"' && open != '<') {
    const std::size_t begin = at_;
    at_ += open == '-' ? 1 : 0;
    (void)name("a value");
    return text_.substr(begin, at_ - begin);
  }
  const std::size_t close = text_.find(open == '<' ? '>' : open, at_ + 1);
  if (close == std::string_view::npos) {
    refuse(at_,
           fmt::format("the value that begins here does not end: {}", quoted(text_.substr(at_))));
  }
  const std::string_view inner = text_.substr(at_ + 1, close - at_ - 1);
  at_ = close + 1;
  return open == '<' ? inner.substr(0, inner.find(':')) : inner;
}

/// Reads the arguments of a call whose parenthesis is open.
PythonCall PythonLists::call(std::string_view type, std::size_t offset) {
  PythonCall call{.name = last_part(type), .arguments = {}, .offset = offset};
  while (next_element(call.arguments.empty(), ')')) {
    const std::string_view key = name("the name of an argument");
    expect('=', "after the name of an argument; write every argument with its name");
    if (call.argument(key)) {
      refuse(at_, fmt::format("argument {} appears twice; keep one", quoted(key)));
    }
    call.arguments.emplace_back(key, value());
  }
  return call;
}

void PythonLists::calls(PythonItem& item, char close) {
  item.tuple = true;
  while (next_element(item.calls.empty(), close)) {
    (void)peek();
    const std::size_t offset = at_;
    const std::string_view type = name("a call");
    expect('(', "after the name of a call");
    item.calls.push_back(call(type, offset));
  }
}

std::optional<PythonItem> PythonLists::next_item() {
  if (!next_element(!std::exchange(any_item_, true), ']')) {
    return std::nullopt;
  }
  (void)peek();
  PythonItem item{.calls = {}, .tuple = false, .tuple_type = {}, .offset = at_};
  if (take('(')) {
    calls(item, ')');
    return item;
  }
  const std::string_view type = name("a call or None");
  if (type == "None") {
    return item;
  }
  expect('(', "after the name of a call");
  if (peek() == '(' || peek() == '[') {
    item.tuple_type = last_part(type);
    const char close = take('(') ? ')' : ']';
    at_ += close == ']' ? 1 : 0;
    calls(item, close);
    expect(')', "after the tuple");
  } else {
    item.calls.push_back(call(type, item.offset));
  }
  return item;
}

}  // namespace stagecraft::formats
