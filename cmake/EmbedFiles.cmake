# Writes the files of a page as one of the constants of scheduler/render/html/html_assets.h:
#
#   cmake -DPAGE=<folder> -DSTYLES=<name;name> -DSCRIPTS=<name;name> -DNAME=<constant> -DOUTPUT=<file.cc> [-DCONNECTS=ON] -P EmbedFiles.cmake
#
# The document is shell.html beside the folder, with the folder's page.html in it. The scripts are
# joined in the order given, in a scope of their own. A page that connects may talk to the server that sent it.

function(read_source result)
  set(all "")
  foreach(name IN LISTS ARGN)
    file(READ "${PAGE}/${name}" content)
    string(APPEND all "${content}")
  endforeach()
  set(${result} "${all}" PARENT_SCOPE)
endfunction()

read_source(shell ../shell.html)
read_source(body page.html)
string(REPLACE "{{body}}" "${body}" page "${shell}")
set(connect "")
if(CONNECTS)
  set(connect "connect-src 'self'; ")
endif()
string(REPLACE "{{connect}}" "${connect}" page "${page}")
read_source(style ${STYLES})
read_source(script ${SCRIPTS})

file(WRITE "${OUTPUT}" "// Made from ${PAGE} by cmake/EmbedFiles.cmake: edit the files there.
#include \"stagecraft/scheduler/render/html/html_assets.h\"

namespace stagecraft::drawing {

const HtmlAssets ${NAME}{
    R\"embedded(${page})embedded\",
    R\"embedded(${style})embedded\",
    R\"embedded((() => {
\"use strict\";
${script}})();
)embedded\"};

}  // namespace stagecraft::drawing
")
