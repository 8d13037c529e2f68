# A makefile of a client of the tools: includes a fragment and uses its variables.
# make -f tools.make FRAGMENT=.../gasnet_tools-par.mak GASNET_PREFIX=... SOURCE=... OUT=...

include $(FRAGMENT)

all: $(OUT) $(OUT)-static $(OUT)-cxx

$(OUT): $(SOURCE)
	$(GASNETTOOLS_CC) $(GASNETTOOLS_CPPFLAGS) $(GASNETTOOLS_CFLAGS) $(SOURCE) $(GASNETTOOLS_LDFLAGS) $(GASNETTOOLS_LIBS) -o $@
$(OUT)-static: $(SOURCE)
	$(GASNETTOOLS_LD) $(GASNETTOOLS_CPPFLAGS) $(SOURCE) $(GASNETTOOLS_LIBDIR)/lib$(GASNETTOOLS_TOOLLIB_NAME).a -lpthread -lm -o $@
$(OUT)-cxx: $(SOURCE)
	$(GASNETTOOLS_CXX) -x c++ $(GASNETTOOLS_CPPFLAGS) $(GASNETTOOLS_CXXFLAGS) $(SOURCE) -x none $(GASNETTOOLS_LDFLAGS) $(GASNETTOOLS_LIBS) -o $@
.PHONY: all
