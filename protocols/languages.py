"""Language tags (BCP 47), and what publishers write instead.

Feeds say ``english``, ``en_US.UTF-8`` or ``EN-us``. This becomes the intended tag, or
"" if the intention is not clear. Where they say nothing, a language is guessed from the
entry's text, if a guess is sure.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice, takewhile
from typing import Final

from protocols.model import Entry
from protocols.track.subject import primary_language, texts_of

_LONGEST: Final = 100
_CODES: Final = """
aa=aar ab=abk ae=ave af=afr ak=aka am=amh an=arg ar=ara as=asm av=ava ay=aym az=aze
ba=bak be=bel bg=bul bi=bis bm=bam bn=ben bo=bod=tib br=bre bs=bos ca=cat ce=che ch=cha
co=cos cr=cre cs=ces=cze cu=chu cv=chv cy=cym=wel da=dan de=deu=ger dv=div dz=dzo ee=ewe
el=ell=gre en=eng eo=epo es=spa et=est eu=eus=baq fa=fas=per ff=ful fi=fin fj=fij fo=fao
fr=fra=fre fy=fry ga=gle gd=gla gl=glg gn=grn gu=guj gv=glv ha=hau he=heb hi=hin ho=hmo
hr=hrv ht=hat hu=hun hy=hye=arm hz=her ia=ina id=ind ie=ile ig=ibo ii=iii ik=ipk io=ido
is=isl=ice it=ita iu=iku ja=jpn jv=jav ka=kat=geo kg=kon ki=kik kj=kua kk=kaz kl=kal
km=khm kn=kan ko=kor kr=kau ks=kas ku=kur kv=kom kw=cor ky=kir la=lat lb=ltz lg=lug
li=lim ln=lin lo=lao lt=lit lu=lub lv=lav mg=mlg mh=mah mi=mri=mao mk=mkd=mac ml=mal
mn=mon mr=mar ms=msa=may mt=mlt my=mya=bur na=nau nb=nob nd=nde ne=nep ng=ndo nl=nld=dut
nn=nno no=nor nr=nbl nv=nav ny=nya oc=oci oj=oji om=orm or=ori os=oss pa=pan pi=pli
pl=pol ps=pus pt=por qu=que rm=roh rn=run ro=ron=rum ru=rus rw=kin sa=san sc=srd sd=snd
se=sme sg=sag si=sin sk=slk=slo sl=slv sm=smo sn=sna so=som sq=sqi=alb sr=srp ss=ssw
st=sot su=sun sv=swe sw=swa ta=tam te=tel tg=tgk th=tha ti=tir tk=tuk tl=tgl tn=tsn
to=ton tr=tur ts=tso tt=tat tw=twi ty=tah ug=uig uk=ukr ur=urd uz=uzb ve=ven vi=vie
vo=vol wa=wln wo=wol xh=xho yi=yid yo=yor za=zha zh=zho=chi zu=zul
"""
"""ISO 639-1, each with its codes of three letters. "When a language has both an ISO
639-1 two-character code and a three-character code […], the two-character code is used
as the subtag" (RFC 5646 2.2.1)."""
_NAMES: Final = """
af=afrikaans ar=arabic=العربية bg=bulgarian=български bn=bengali ca=catalan=català
cs=czech=čeština=cesky da=danish=dansk de=german=deutsch el=greek=ελληνικά
en=english eo=esperanto es=spanish=español=espanol=castellano et=estonian=eesti
eu=basque=euskara fa=persian=farsi=فارسی fi=finnish=suomi
fr=french=français=francais ga=irish gl=galician he=hebrew=עברית hi=hindi=हिन्दी
hr=croatian=hrvatski hu=hungarian=magyar hy=armenian id=indonesian is=icelandic
it=italian=italiano ja=japanese=日本語 ka=georgian ko=korean=한국어 la=latin
lt=lithuanian lv=latvian mk=macedonian ms=malay nb=norsk nl=dutch=nederlands
no=norwegian pl=polish=polski pt=portuguese=português=portugues ro=romanian=română
ru=russian=русский sk=slovak=slovenčina sl=slovenian=slovene sq=albanian sr=serbian
sv=swedish=svenska sw=swahili ta=tamil te=telugu th=thai=ไทย
tr=turkish=türkçe=turkce uk=ukrainian=українська ur=urdu vi=vietnamese=tiếng-việt
zh=chinese=中文
"""
_MEANT: Final = "cs=cz da=dk el=gr he=iw id=in ja=jp yi=ji zh=cn"
"""Withdrawn codes, and codes of countries that are not language codes."""


def _by_word(lines: str) -> dict[str, str]:
    rows = (each.split("=") for each in lines.split())
    return {word: code for code, *words in rows for word in words}


_TWO_LETTERS: Final = frozenset(each[:2] for each in _CODES.split())
_BY_WORD: Final = {**_by_word(_CODES), **_by_word(_NAMES), **_by_word(_MEANT)}
_NONE: Final = frozenset({"mis", "mul", "und", "zxx"})
_IS_LANGUAGE: Final = re.compile("[a-z]{2,3}").fullmatch
_EXTENDED: Final = frozenset({"ar", "ms", "sgn", "sw", "uz", "zh"})
_IS_EXTENSION: Final = re.compile("[a-z]{3}").fullmatch
_IS_SCRIPT: Final = re.compile("[a-z]{4}").fullmatch
_IS_REGION: Final = re.compile("[a-z]{2}|[0-9]{3}").fullmatch
_IS_VARIANT: Final = re.compile("[a-z0-9]{5,8}|[0-9][a-z0-9]{3}").fullmatch
_IS_SINGLE: Final = re.compile("[a-z0-9]").fullmatch
_IS_PRIVATE: Final = re.compile("[a-z0-9]{1,8}").fullmatch
_IS_EXTENDING: Final = re.compile("[a-z0-9]{2,8}").fullmatch


def language_tag(written: str) -> str:
    """The tag in its usual form (RFC 5646 2.1.1): ``en-GB`` for ``EN_gb``.

    "" if the text names no language. What follows a language but is no subtag is
    dropped.
    """
    return _tag(written[:_LONGEST])


@lru_cache(maxsize=1024)
def _tag(written: str) -> str:
    word = written.strip().lower()
    for end in ",;.@":  # a list, a locale with its encoding
        word = word.partition(end)[0]
    word = "-".join(word.replace("_", "-").split())
    named = _BY_WORD.get(word)
    if named:
        return named
    primary, *rest = word.split("-")
    language = _BY_WORD.get(primary, primary)
    if not _IS_LANGUAGE(language) or language in _NONE:
        return ""
    if len(language) == 2 and language not in _TWO_LETTERS:
        return ""
    return "-".join((language, *_subtags(language, rest)))


def _subtags(language: str, parts: list[str]) -> list[str]:
    """Valid subtags in order: extended language, script, region, variants,
    extensions.
    """
    found: list[str] = []
    if parts and language in _EXTENDED and _IS_EXTENSION(parts[0]):
        found.append(parts.pop(0))
    if parts and _IS_SCRIPT(parts[0]):
        found.append(parts.pop(0).title())
    if parts and _IS_REGION(parts[0]):
        found.append(parts.pop(0).upper())
    while parts and _IS_VARIANT(parts[0]):
        found.append(parts.pop(0))
    while parts and _IS_SINGLE(parts[0]):
        is_inside = _IS_PRIVATE if parts[0] == "x" else _IS_EXTENDING
        inside = [*takewhile(is_inside, parts[1:])]
        if not inside:
            break
        found += parts[0], *inside
        del parts[: 1 + len(inside)]
    return found


def reduce_language(tag: str) -> str:
    """The tag as ``ll`` or ``ll-CC``, the forms that all readers of collections accept.

    Script, variant and numbered region are dropped. "" if the tag names no language, or
    one without a code of two letters.
    """
    language, *rest = language_tag(tag).split("-")
    if len(language) != 2:
        return ""
    for part in takewhile(lambda each: len(each) > 1, rest):
        if len(part) == 2:
            return f"{language}-{part}"
    return language


# --- guesses -------------------------------------------------------------------------

FEWEST_LETTERS: Final = 100
"""With fewer letters no language is guessed: a name and a number fit many languages."""
MOST_CHARACTERS: Final = 1_000
"""The most characters looked at: they are enough, and each takes time."""
LEAST_CONFIDENCE: Final = 0.9


def telling_text(entry: Entry) -> str:
    """An entry's first words, without markup; "" if they are too few to guess from."""
    text = " ".join(texts_of(entry))[:MOST_CHARACTERS]
    letters = islice(filter(str.isalpha, text), FEWEST_LETTERS)
    return text if sum(1 for _ in letters) == FEWEST_LETTERS else ""


def believed(code: str, confidence: float) -> str:
    """The language (ISO 639-1) of a guess; "" if there is none, or it is unsure."""
    return primary_language(code) if confidence >= LEAST_CONFIDENCE else ""
