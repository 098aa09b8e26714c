#include "stagecraft/scheduler/render/html/html_assets.h"

#include "stagecraft/scheduler/render/escape.h"

namespace stagecraft::drawing {
namespace {

/// Returns the text before `mark` and advances `rest` past it.
std::string_view take_until(std::string_view& rest, std::string_view mark) {
  const std::size_t at = rest.find(mark);
  const std::string_view before = rest.substr(0, at);
  rest.remove_prefix(at + mark.size());
  return before;
}

}  // namespace

std::string HtmlAssets::document(std::string_view title, std::string_view data) const {
  std::string_view rest = page;
  std::string made(take_until(rest, "{{title}}"));
  made += escaped(title);
  made += take_until(rest, "{{style}}");
  made += style;
  made += take_until(rest, "{{data}}");
  made += data;
  made += take_until(rest, "{{script}}");
  made += script;
  made += rest;
  return made;
}

}  // namespace stagecraft::drawing
